// Functions of one and two operands for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/elementwise/functions.inl>
#include <tapedeck/kernels/cuda/elementwise/unary.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_ELEMENTWISE(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

class CudaFunctions : public RandomCalls {};

TEST_F(CudaFunctions, OfNumbersEqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(neg), TAPEDECK_CASE(abs), TAPEDECK_CASE(sign), TAPEDECK_CASE(relu), TAPEDECK_CASE(square),
                        TAPEDECK_CASE(floor), TAPEDECK_CASE(ceil), TAPEDECK_CASE(round), TAPEDECK_CASE(trunc)})
    for (const DType t : kNumbers) try_elementwise(c, {t, t});
}

TEST_F(CudaFunctions, OfFloatsEqualCpu) {
  const Case cases[] = {TAPEDECK_CASE(exp),   TAPEDECK_CASE(log),    TAPEDECK_CASE(tanh),    TAPEDECK_CASE(sigmoid),
                        TAPEDECK_CASE(sqrt),  TAPEDECK_CASE(rsqrt),  TAPEDECK_CASE(sin),     TAPEDECK_CASE(cos),
                        TAPEDECK_CASE(frac),  TAPEDECK_CASE(exp2),   TAPEDECK_CASE(expm1),   TAPEDECK_CASE(log2),
                        TAPEDECK_CASE(log10), TAPEDECK_CASE(log1p),  TAPEDECK_CASE(tan),     TAPEDECK_CASE(asin),
                        TAPEDECK_CASE(acos),  TAPEDECK_CASE(atan),   TAPEDECK_CASE(sinh),    TAPEDECK_CASE(cosh),
                        TAPEDECK_CASE(asinh), TAPEDECK_CASE(acosh),  TAPEDECK_CASE(atanh),   TAPEDECK_CASE(erf),
                        TAPEDECK_CASE(erfc),  TAPEDECK_CASE(lgamma), TAPEDECK_CASE(digamma), TAPEDECK_CASE(reciprocal)};
  for (const Case& c : cases)
    for (const DType t : kFloats) try_elementwise(c, {t, t});
  for (const DType t : kFloats) try_elementwise(TAPEDECK_CASE(erfinv), {t, t}, nullptr, 24, {-1, 1});
}

TEST_F(CudaFunctions, WithAttributesEqualCpu) {
  ClampAttrs clamp, reversed;
  clamp.min = -1.5, clamp.max = 2.25, reversed.min = 2, reversed.max = 1;
  NanToNumAttrs number;
  number.nan = 1.25, number.posinf = 1e4, number.neginf = -7;
  PolygammaAttrs polygamma;
  polygamma.n = 2;
  for (const DType t : kNumbers) try_elementwise(TAPEDECK_CASE(clamp), {t, t}, &clamp);
  for (const DType t : kNumbers) try_elementwise(TAPEDECK_CASE(clamp), {t, t}, &reversed);
  for (const DType t : kFloats) try_elementwise(TAPEDECK_CASE(nan_to_num), {t, t}, &number);
  for (const DType t : kFloats) try_elementwise(TAPEDECK_CASE(polygamma), {t, t}, &polygamma, 6, {-5, 5, false});
}

TEST_F(CudaFunctions, OfTwoAndThreeEqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(atan2), TAPEDECK_CASE(hypot), TAPEDECK_CASE(logaddexp), TAPEDECK_CASE(copysign)})
    for (const DType t : kFloats) try_elementwise(c, {t, t, t});
  for (const DType t : kFloats) try_elementwise(TAPEDECK_CASE(lerp), {t, t, t, t});
}

}  // namespace
}  // namespace tapedeck::testing::cuda
