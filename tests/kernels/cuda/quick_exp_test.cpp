// Exponentials for results that are rounded to halves, against the math library in f64, and those for f32 against scalar.h.
#include <tapedeck/kernels/cuda/quick_exp.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels::emulated {
namespace {

TEST(CudaQuickExp, IsPreciseEnoughForHalves) {
  for (int i = -8700; i <= 8800; ++i) {
    const float x = static_cast<float>(i) / 100.0f;
    const double wanted = std::exp(static_cast<double>(x));
    EXPECT_NEAR(exp_for<F16>(x) / wanted, 1, 0x1p-17) << x;
    EXPECT_EQ(exp_for<Bf16>(x), exp_for<F16>(x)) << x;
    EXPECT_EQ(exp_for<float>(x), exp_of(x)) << x;
  }
}

TEST(CudaQuickExp, KnowsZeroInfinityAndNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_for<Bf16>(0.0f), 1);
  EXPECT_EQ(exp_for<Bf16>(-inf), 0);
  EXPECT_EQ(exp_for<Bf16>(inf), inf);
  EXPECT_TRUE(std::isnan(exp_for<Bf16>(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace tapedeck::kernels::emulated
