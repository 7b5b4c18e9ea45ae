// The functions of cuBLASLt that the kernels call, loaded at run time (library.h). They are declared by hand, so that this file
// compiles without CUDA headers and the program starts without cuBLAS. tests/kernels/cuda/api_test.cpp compares the
// declarations with NVIDIA's headers, on machines that have them.
#pragma once

#include <tapedeck/kernels/cuda/library.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

using LtStatus = int;       // cublasStatus_t: 0 is success
using LtComputeType = int;  // cublasComputeType_t
using LtDataType = int;     // cudaDataType_t
using LtAttribute = int;    // cublasLtMatmulDescAttributes_t and the other attribute enums
using LtStream = void*;     // cudaStream_t
using LtHandle = struct LtHandleOpaque*;
using LtMatmul = struct LtMatmulOpaque*;          // cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutOpaque*;          // cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceOpaque*;  // cublasLtMatmulPreference_t

// cublasLtMatmulAlgo_t: plain bytes. They may be stored, and used again with the same version of cuBLASLt.
struct LtAlgorithm {
  std::uint64_t data[8];
};

struct LtHeuristic {  // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  std::size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

#define TAPEDECK_LT_FUNCTIONS(F)                                                                                               \
  F(cublasLtGetVersion, std::size_t, ())                                                                                       \
  F(cublasLtGetStatusString, const char*, (LtStatus))                                                                          \
  F(cublasLtCreate, LtStatus, (LtHandle*))                                                                                     \
  F(cublasLtDestroy, LtStatus, (LtHandle))                                                                                     \
  F(cublasLtMatmulDescCreate, LtStatus, (LtMatmul*, LtComputeType, LtDataType scale_type))                                     \
  F(cublasLtMatmulDescDestroy, LtStatus, (LtMatmul))                                                                           \
  F(cublasLtMatmulDescSetAttribute, LtStatus, (LtMatmul, LtAttribute, const void* value, std::size_t bytes))                   \
  F(cublasLtMatrixLayoutCreate, LtStatus,                                                                                      \
    (LtLayout*, LtDataType, std::uint64_t rows, std::uint64_t columns, std::int64_t leading_dimension))                        \
  F(cublasLtMatrixLayoutDestroy, LtStatus, (LtLayout))                                                                         \
  F(cublasLtMatrixLayoutSetAttribute, LtStatus, (LtLayout, LtAttribute, const void* value, std::size_t bytes))                 \
  F(cublasLtMatmulPreferenceCreate, LtStatus, (LtPreference*))                                                                 \
  F(cublasLtMatmulPreferenceDestroy, LtStatus, (LtPreference))                                                                 \
  F(cublasLtMatmulPreferenceSetAttribute, LtStatus, (LtPreference, LtAttribute, const void* value, std::size_t bytes))         \
  F(cublasLtMatmulAlgoGetHeuristic, LtStatus,                                                                                  \
    (LtHandle, LtMatmul, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference, int wanted, LtHeuristic* found,         \
     int* count))                                                                                                              \
  F(cublasLtMatmul, LtStatus,                                                                                                  \
    (LtHandle, LtMatmul, const void* alpha, const void* a, LtLayout, const void* b, LtLayout, const void* beta, const void* c, \
     LtLayout, void* d, LtLayout, const LtAlgorithm*, void* workspace, std::size_t workspace_bytes, LtStream))

struct LtApi {
  TAPEDECK_LT_FUNCTIONS(TAPEDECK_TABLE_FIELD)
};

// Returns null if cuBLASLt cannot be loaded; *why (if given) then holds the reason, one line. Thread safe.
const LtApi* lt_api(std::string* why = nullptr);
const LtApi* set_fake(const LtApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
