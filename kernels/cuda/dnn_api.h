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

// The constants of cuDNN's backend interface that the kernels use, by NVIDIA's names.
// clang-format off
#define TAPEDECK_DNN_CONSTANTS(C) \
  C(CUDNN_DATA_FLOAT, 0) \
  C(CUDNN_DATA_HALF, 2) \
  C(CUDNN_DATA_BFLOAT16, 9) \
  C(CUDNN_CROSS_CORRELATION, 1) \
  C(CUDNN_TYPE_HANDLE, 0) \
  C(CUDNN_TYPE_DATA_TYPE, 1) \
  C(CUDNN_TYPE_INT64, 3) \
  C(CUDNN_TYPE_FLOAT, 4) \
  C(CUDNN_TYPE_VOID_PTR, 6) \
  C(CUDNN_TYPE_CONVOLUTION_MODE, 7) \
  C(CUDNN_TYPE_HEUR_MODE, 8) \
  C(CUDNN_TYPE_KNOB_TYPE, 9) \
  C(CUDNN_TYPE_NUMERICAL_NOTE, 11) \
  C(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15) \
  C(CUDNN_TYPE_BEHAVIOR_NOTE, 19) \
  C(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1) \
  C(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2) \
  C(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3) \
  C(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4) \
  C(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) \
  C(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7) \
  C(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
  C(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
  C(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12) \
  C(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
  C(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16) \
  C(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17) \
  C(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100) \
  C(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101) \
  C(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102) \
  C(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103) \
  C(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104) \
  C(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105) \
  C(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106) \
  C(CUDNN_ATTR_ENGINEHEUR_MODE, 200) \
  C(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) \
  C(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202) \
  C(CUDNN_ATTR_ENGINECFG_ENGINE, 300) \
  C(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302) \
  C(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400) \
  C(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401) \
  C(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) \
  C(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600) \
  C(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) \
  C(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717) \
  C(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800) \
  C(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801) \
  C(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900) \
  C(CUDNN_ATTR_TENSOR_DATA_TYPE, 901) \
  C(CUDNN_ATTR_TENSOR_DIMENSIONS, 902) \
  C(CUDNN_ATTR_TENSOR_STRIDES, 903) \
  C(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906) \
  C(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) \
  C(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001) \
  C(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003) \
  C(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301) \
  C(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303) \
  C(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, 1305) \
  C(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0) \
  C(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) \
  C(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) \
  C(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
  C(CUDNN_NUMERICAL_NOTE_WINOGRAD, 5) \
  C(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, 8) \
  C(CUDNN_NUMERICAL_NOTE_TYPE_COUNT, 10) \
  C(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0) \
  C(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, 5) \
  C(CUDNN_KNOB_TYPE_TILE_SIZE, 2) \
  C(CUDNN_KNOB_TYPE_IDX_MODE, 18) \
  C(CUDNN_KNOB_TYPE_COUNTS, 44) \
  C(CUDNN_HEUR_MODE_B, 1) \
  C(CUDNN_HEUR_MODE_FALLBACK, 2) \
  C(CUDNN_HEUR_MODE_A, 3)
// clang-format on

namespace dnn {

#define TAPEDECK_DNN_CONSTANT(name, value) inline constexpr int name = value;
TAPEDECK_DNN_CONSTANTS(TAPEDECK_DNN_CONSTANT)
#undef TAPEDECK_DNN_CONSTANT

}  // namespace dnn

struct DnnApi {
  TAPEDECK_DNN_FUNCTIONS(TAPEDECK_TABLE_FIELD)
};

// Returns null if cuDNN cannot be loaded; *why (if given) then holds the reason, one line. Thread safe.
const DnnApi* dnn_api(std::string* why = nullptr);
const DnnApi* set_fake(const DnnApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
