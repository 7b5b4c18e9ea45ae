// Comparisons, logic, bits, selection and casts for the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/elementwise/cast.inl>
#include <tapedeck/kernels/cuda/elementwise/compare.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_ELEMENTWISE(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

constexpr DType kBool = DType::boolean;

class CudaComparisons : public RandomCalls {};

TEST_F(CudaComparisons, EqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(equal), TAPEDECK_CASE(not_equal), TAPEDECK_CASE(less), TAPEDECK_CASE(less_equal),
                        TAPEDECK_CASE(greater), TAPEDECK_CASE(greater_equal)})
    for (const DType t : kAll) try_elementwise(c, {t, t, kBool});
  IsCloseAttrs attrs;
  attrs.rtol = 0.3, attrs.atol = 0.5;
  for (const bool equal_nan : {false, true}) {
    attrs.equal_nan = equal_nan;
    for (const DType t : kNumbers) try_elementwise(TAPEDECK_CASE(isclose), {t, t, kBool}, &attrs);
  }
}

TEST_F(CudaComparisons, TestsOfOneOperandEqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(isnan), TAPEDECK_CASE(isinf), TAPEDECK_CASE(isfinite)})
    for (const DType t : kNumbers) try_elementwise(c, {t, kBool});
}

TEST_F(CudaComparisons, LogicEqualsCpu) {
  for (const Case& c : {TAPEDECK_CASE(logical_and), TAPEDECK_CASE(logical_or), TAPEDECK_CASE(logical_xor)})
    try_elementwise(c, {kBool, kBool, kBool});
  try_elementwise(TAPEDECK_CASE(logical_not), {kBool, kBool});
}

TEST_F(CudaComparisons, BitsEqualCpu) {
  for (const DType t : {DType::i32, DType::i64, DType::u8, kBool}) {
    for (const Case& c : {TAPEDECK_CASE(bitwise_and), TAPEDECK_CASE(bitwise_or), TAPEDECK_CASE(bitwise_xor)})
      try_elementwise(c, {t, t, t});
    try_elementwise(TAPEDECK_CASE(bitwise_not), {t, t});
  }
  for (const Case& c : {TAPEDECK_CASE(left_shift), TAPEDECK_CASE(right_shift)})
    for (const DType t : kIntegers) try_elementwise(c, {t, t, t});
}

TEST_F(CudaComparisons, WhereEqualsCpu) {
  Case c = TAPEDECK_CASE(where);
  c.native = true;
  for (const DType t : kAll) try_elementwise(c, {kBool, t, t, t});
}

class CudaConversions : public RandomCalls {};

TEST_F(CudaConversions, CastsEqualCpu) {
  Case c = TAPEDECK_CASE(cast);
  c.native = true;
  for (const DType from : kAll)
    for (const DType to : kAll) {
      const CastAttrs attrs{to};
      try_elementwise(c, {from, to}, &attrs, 12);
    }
}

}  // namespace
}  // namespace tapedeck::testing::cuda
