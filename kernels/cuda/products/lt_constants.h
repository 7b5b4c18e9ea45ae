// The numbers of cuBLASLt's enums that the products use. tests/kernels/cuda/products compares them with NVIDIA's headers, on
// machines that have them.
#pragma once

#include <cstdint>

namespace tapedeck::kernels::cuda::lt {

// cudaDataType_t
inline constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealBf16 = 14;
// cublasComputeType_t
inline constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
// cublasOperation_t
inline constexpr std::int32_t kPlain = 0, kTransposed = 1;
// cublasLtMatmulDescAttributes_t
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
// cublasLtEpilogue_t
inline constexpr std::int32_t kEpilogueBias = 4;
// cublasLtMatrixLayoutAttribute_t
inline constexpr int kBatchCount = 5, kBatchOffset = 6;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kMaxWorkspace = 1, kReductionSchemes = 3;
inline constexpr int kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;
// cublasLtReductionScheme_t: partial sums of the compute type are added in the workspace, in a fixed order.
inline constexpr std::uint32_t kReduceInWorkspace = 2;

}  // namespace tapedeck::kernels::cuda::lt
