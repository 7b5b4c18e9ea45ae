// The functions of cuDNN's backend interface that the kernels call, loaded at run time (library.h). cuDNN does all its work
// through descriptors, so a dozen functions suffice. They are declared by hand; tests/kernels/cuda/api_test.cpp compares the
// declarations with NVIDIA's headers.
#pragma once

#include <tapedeck/kernels/cuda/library.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

using DnnStatus = int;          // cudnnStatus_t: 0 is success
using DnnDescriptorKind = int;  // cudnnBackendDescriptorType_t
using DnnAttribute = int;       // cudnnBackendAttributeName_t
using DnnAttributeType = int;   // cudnnBackendAttributeType_t
using DnnStream = void*;        // cudaStream_t
using DnnHandle = struct DnnHandleOpaque*;
using DnnDescriptor = void*;  // cudnnBackendDescriptor_t

#define TAPEDECK_DNN_FUNCTIONS(F)                                                                             \
  F(cudnnGetVersion, std::size_t, ())                                                                         \
  F(cudnnGetErrorString, const char*, (DnnStatus))                                                            \
  F(cudnnGetLastErrorString, void, (char* message, std::size_t bytes))                                        \
  F(cudnnCreate, DnnStatus, (DnnHandle*))                                                                     \
  F(cudnnDestroy, DnnStatus, (DnnHandle))                                                                     \
  F(cudnnSetStream, DnnStatus, (DnnHandle, DnnStream))                                                        \
  F(cudnnBackendCreateDescriptor, DnnStatus, (DnnDescriptorKind, DnnDescriptor*))                             \
  F(cudnnBackendDestroyDescriptor, DnnStatus, (DnnDescriptor))                                                \
  F(cudnnBackendSetAttribute, DnnStatus,                                                                      \
    (DnnDescriptor, DnnAttribute, DnnAttributeType, std::int64_t count, const void* values))                  \
  F(cudnnBackendGetAttribute, DnnStatus,                                                                      \
    (DnnDescriptor, DnnAttribute, DnnAttributeType, std::int64_t wanted, std::int64_t * count, void* values)) \
  F(cudnnBackendFinalize, DnnStatus, (DnnDescriptor))                                                         \
  F(cudnnBackendExecute, DnnStatus, (DnnHandle, DnnDescriptor plan, DnnDescriptor variant_pack))

struct DnnApi {
  TAPEDECK_DNN_FUNCTIONS(TAPEDECK_TABLE_FIELD)
};

// Returns null if cuDNN cannot be loaded; *why (if given) then holds the reason, one line. Thread safe.
const DnnApi* dnn_api(std::string* why = nullptr);
const DnnApi* set_fake(const DnnApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
