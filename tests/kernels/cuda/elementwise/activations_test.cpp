// Activations for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/elementwise/activations.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_ELEMENTWISE(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

class CudaActivations : public RandomCalls {
 protected:
  void try_unary(const Case& c, const void* attrs = nullptr) {
    for (const DType t : kFloats) try_elementwise(c, {t, t}, attrs);
  }
  void try_binary(const Case& c, const void* attrs = nullptr) {
    for (const DType t : kFloats) try_elementwise(c, {t, t, t}, attrs);
  }
};

TEST_F(CudaActivations, WithoutAttributesEqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(silu), TAPEDECK_CASE(hardsigmoid), TAPEDECK_CASE(hardswish), TAPEDECK_CASE(mish),
                        TAPEDECK_CASE(softsign), TAPEDECK_CASE(logsigmoid), TAPEDECK_CASE(tanhshrink), TAPEDECK_CASE(selu)})
    try_unary(c);
  for (const Case& c :
       {TAPEDECK_CASE(silu_grad), TAPEDECK_CASE(hardswish_grad), TAPEDECK_CASE(mish_grad), TAPEDECK_CASE(prelu)})
    try_binary(c);
}

TEST_F(CudaActivations, GeluEqualsCpu) {
  for (const char* by : {"none", "tanh"}) {
    const GeluAttrs attrs{by};
    try_unary(TAPEDECK_CASE(gelu), &attrs);
    try_binary(TAPEDECK_CASE(gelu_grad), &attrs);
  }
}

TEST_F(CudaActivations, WithAttributesEqualCpu) {
  SoftplusAttrs softplus;
  softplus.beta = 1.5, softplus.threshold = 4;
  EluAttrs elu;
  elu.alpha = 0.7;
  EluGradAttrs elu_grad;
  elu_grad.alpha = 0.7, elu_grad.scale = 1.1, elu_grad.slope = 0.9;
  LeakyReluAttrs leaky;
  leaky.slope = 0.03;
  ShrinkAttrs shrink;
  shrink.bound = 0.75;
  ThresholdAttrs threshold;
  threshold.threshold = 0.5, threshold.value = -3.25;
  try_unary(TAPEDECK_CASE(softplus), &softplus);
  try_binary(TAPEDECK_CASE(softplus_grad), &softplus);
  try_unary(TAPEDECK_CASE(elu), &elu);
  try_unary(TAPEDECK_CASE(celu), &elu);
  try_binary(TAPEDECK_CASE(elu_grad), &elu_grad);
  ClampAttrs bounds;
  bounds.min = -0.5, bounds.max = 0.75;
  try_binary(TAPEDECK_CASE(clamp_grad), &bounds);
  try_unary(TAPEDECK_CASE(leaky_relu), &leaky);
  try_unary(TAPEDECK_CASE(hardshrink), &shrink);
  try_unary(TAPEDECK_CASE(softshrink), &shrink);
  try_unary(TAPEDECK_CASE(threshold), &threshold);
}

}  // namespace
}  // namespace tapedeck::testing::cuda
