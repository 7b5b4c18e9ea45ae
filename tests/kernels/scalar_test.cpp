// Tests the f32 polynomials against long double, over the whole range and at its limits.
#include <tapedeck/kernels/scalar.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapedeck::kernels {
namespace {

constexpr float kScalarInf = std::numeric_limits<float>::infinity();
const float kScalarNan = std::numeric_limits<float>::quiet_NaN();

// The distance in units of the last place of the exact result. For denormals the unit is the smallest float.
double ulps_from(float got, long double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isnan(rounded)) return got == rounded ? 0 : 1e9;
  const float magnitude = std::max(std::fabs(rounded), std::numeric_limits<float>::min());
  const long double ulp = static_cast<long double>(std::nextafter(magnitude, kScalarInf)) - magnitude;
  return static_cast<double>(std::fabs((got - exact) / ulp));
}

// Calls f for every float whose bits are a multiple of `step`, with both signs.
template <class F>
void for_floats_of_all_sizes(std::uint32_t step, F&& f) {
  for (std::uint64_t bits = 0; bits < 0x7F800000u; bits += step) {
    f(bits_float(static_cast<std::uint32_t>(bits)));
    f(bits_float(static_cast<std::uint32_t>(bits) | 0x80000000u));
  }
}

TEST(Scalar, ExpWithinUlps) {
  double worst = 0;
  for_floats_of_all_sizes(
      9973, [&](float x) { worst = std::max(worst, ulps_from(exp_f32(x), std::exp(static_cast<long double>(x)))); });
  for (float x = -104; x < 89; x += 0.00071f)
    worst = std::max(worst, ulps_from(exp_f32(x), std::exp(static_cast<long double>(x))));
  EXPECT_LE(worst, 2.0);
}

TEST(Scalar, TanhWithinUlps) {
  double worst = 0;
  for_floats_of_all_sizes(
      9973, [&](float x) { worst = std::max(worst, ulps_from(tanh_f32(x), std::tanh(static_cast<long double>(x)))); });
  for (float x = -10; x < 10; x += 0.00013f)
    worst = std::max(worst, ulps_from(tanh_f32(x), std::tanh(static_cast<long double>(x))));
  EXPECT_LE(worst, 5.0);
}

TEST(Scalar, SigmoidWithinUlps) {
  double worst = 0;
  const auto exact = [](float x) { return 1 / (1 + std::exp(-static_cast<long double>(x))); };
  for_floats_of_all_sizes(9973, [&](float x) { worst = std::max(worst, ulps_from(sigmoid_f32(x), exact(x))); });
  for (float x = -104; x < 20; x += 0.00071f) worst = std::max(worst, ulps_from(sigmoid_f32(x), exact(x)));
  EXPECT_LE(worst, 5.0);
}

TEST(Scalar, LogWithinUlps) {
  double worst = 0;
  for_floats_of_all_sizes(1999, [&](float x) {
    if (x > 0) worst = std::max(worst, ulps_from(log_f32(x), std::log(static_cast<long double>(x))));
  });
  for (float x = 0.5f; x < 2; x += 0.00001f)
    worst = std::max(worst, ulps_from(log_f32(x), std::log(static_cast<long double>(x))));
  EXPECT_LE(worst, 3.0);
}

TEST(Scalar, Edges) {
  EXPECT_EQ(exp_f32(kScalarInf), kScalarInf);
  EXPECT_EQ(exp_f32(-kScalarInf), 0);
  EXPECT_EQ(exp_f32(0), 1);
  EXPECT_EQ(exp_f32(88.8f), kScalarInf);
  EXPECT_GT(exp_f32(-103.0f), 0);
  EXPECT_EQ(tanh_f32(kScalarInf), 1);
  EXPECT_EQ(tanh_f32(-kScalarInf), -1);
  EXPECT_TRUE(std::signbit(tanh_f32(-0.0f)));
  EXPECT_EQ(sigmoid_f32(kScalarInf), 1);
  EXPECT_EQ(sigmoid_f32(-kScalarInf), 0);
  EXPECT_EQ(sigmoid_f32(0), 0.5f);
  EXPECT_EQ(log_f32(0), -kScalarInf);
  EXPECT_EQ(log_f32(-0.0f), -kScalarInf);
  EXPECT_EQ(log_f32(kScalarInf), kScalarInf);
  EXPECT_EQ(log_f32(1), 0);
  EXPECT_TRUE(std::isnan(log_f32(-1)));
  for (const float y : {exp_f32(kScalarNan), log_f32(kScalarNan), tanh_f32(kScalarNan), sigmoid_f32(kScalarNan),
                        Relu{}(kScalarNan), Sign{}(kScalarNan), Maximum{}(kScalarNan, 1.0f), Maximum{}(1.0f, kScalarNan),
                        Minimum{}(kScalarNan, 1.0f), Minimum{}(1.0f, kScalarNan)})
    EXPECT_TRUE(std::isnan(y));
}

TEST(Scalar, Log1pOfAFractionWithinUlps) {
  double worst = 0;
  for (std::uint32_t bits = 0; bits <= 0x3F800000u; bits += 199) {
    const float e = bits_float(bits);
    worst = std::max(worst, ulps_from(log1p_unit_f32(e), std::log1p(static_cast<long double>(e))));
  }
  EXPECT_LE(worst, 1.5);
  EXPECT_TRUE(std::isnan(log1p_unit_f32(kScalarNan)));
}

TEST(Scalar, SoftplusWithinUlps) {
  double worst = 0;
  const auto exact = [](float x) {
    return std::max<long double>(x, 0) + std::log1p(std::exp(-std::fabs(static_cast<long double>(x))));
  };
  for_floats_of_all_sizes(9973, [&](float x) { worst = std::max(worst, ulps_from(softplus_of(x), exact(x))); });
  for (float x = -100; x < 100; x += 0.00131f) worst = std::max(worst, ulps_from(softplus_of(x), exact(x)));
  EXPECT_LE(worst, 2.5);
}

// Exponents whose powers of `a` lie in the range of f32 and close around it.
TEST(Scalar, PowWithinUlps) {
  double worst = 0;
  std::uint32_t state = 1;
  const auto fraction = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) * 0x1p-24f;
  };
  for_floats_of_all_sizes(29989, [&](float x) {
    const float a = std::fabs(x), size = std::fabs(std::log2(a)) + 1e-4f;
    for (const float b : {(fraction() - 0.5f) * 300 / size, (fraction() - 0.5f) * 4, 2.0f, 3.0f, 0.5f, -1.0f, 1.0f, 7.0f}) {
      const float got = Pow{}(a, b);
      const long double exact = std::pow(static_cast<long double>(a), static_cast<long double>(b));
      const float rounded = static_cast<float>(exact);
      if (std::isfinite(rounded)) worst = std::max(worst, ulps_from(got, exact) - (b == 3 ? 1.0 : 0.04));
      if (std::isinf(rounded)) {
        ASSERT_EQ(got, rounded) << a << ", " << b;
      }
    }
    ASSERT_LE(ulps_from(Pow{}(a, -0.5f), 1 / std::sqrt(static_cast<long double>(a))), 1.5) << a;
  });
  EXPECT_LE(worst, 0.5);
}

// The oracle is pow of the C library in double, whose edges are those of IEEE 754.
TEST(Scalar, PowAtItsEdges) {
  const float numbers[] = {0.0f,      -0.0f, 1,      -1,       2,          -2,          3,          -3,          0.5f,
                           -0.5f,     1.5f,  -1.5f,  1e-45f,   -1e-45f,    3e38f,       -3e38f,     16777216,    16777215,
                           -16777215, 1e10f, -1e10f, 33554432, kScalarInf, -kScalarInf, kScalarNan, 0.99999994f, 1.0000001f};
  for (const float a : numbers)
    for (const float b : numbers) {
      const float got = Pow{}(a, b), exact = static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b)));
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(got)) << a << ", " << b;
        continue;
      }
      EXPECT_EQ(std::signbit(got), std::signbit(exact)) << a << ", " << b;
      EXPECT_LE(std::isinf(exact) ? (got == exact ? 0 : 9) : ulps_from(got, exact), 1.5) << a << ", " << b;
      EXPECT_EQ(std::isnan(Pow{}(static_cast<double>(a), static_cast<double>(b))), std::isnan(exact));
    }
}

// Powers that are floats come out exactly.
TEST(Scalar, PowersOfSmallIntegersAreExact) {
  for (int a = -9; a <= 9; ++a)
    for (int b = 0; b <= 7; ++b)
      EXPECT_EQ(Pow{}(static_cast<float>(a), static_cast<float>(b)), std::pow(a, b)) << a << ", " << b;
  for (int n = -149; n <= 127; ++n) EXPECT_EQ(Pow{}(2.0f, static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
}

TEST(Scalar, IntegersWrap) {
  const std::int32_t lowest = std::numeric_limits<std::int32_t>::lowest();
  EXPECT_EQ(Add{}(std::numeric_limits<std::int32_t>::max(), 1), lowest);
  EXPECT_EQ(Neg{}(lowest), lowest);
  EXPECT_EQ(Abs{}(lowest), lowest);
  EXPECT_EQ(Div{}(lowest, -1), lowest);
  EXPECT_EQ(Div{}(-7, 2), -3);
  EXPECT_EQ(Mul{}(std::uint8_t{200}, std::uint8_t{2}), 144);
  EXPECT_EQ(Sub{}(std::uint8_t{1}, std::uint8_t{2}), 255);
  EXPECT_EQ(Pow{}(3, 4), 81);
  EXPECT_EQ(Pow{}(-1, -3), -1);
  EXPECT_EQ(Pow{}(2, -1), 0);
  EXPECT_EQ(Pow{}(std::int64_t{2}, std::int64_t{64}), 0);
}

TEST(Scalar, CastsSaturateTruncateAndWrap) {
  EXPECT_EQ(Cast<std::int32_t>{}(-2.9f), -2);
  EXPECT_EQ(Cast<std::int32_t>{}(3e9f), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(Cast<std::int32_t>{}(-kScalarInf), std::numeric_limits<std::int32_t>::lowest());
  EXPECT_EQ(Cast<std::int64_t>{}(1e30), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Cast<std::int64_t>{}(kScalarNan), 0);
  EXPECT_EQ(Cast<std::uint8_t>{}(-3.0f), 0);
  EXPECT_EQ(Cast<std::uint8_t>{}(300.0), 255);
  EXPECT_EQ(Cast<std::uint8_t>{}(254.9), 254);
  EXPECT_EQ(Cast<std::uint8_t>{}(257), 1);
  EXPECT_EQ(ToBool{}(kScalarNan), 1);
  EXPECT_EQ(ToBool{}(-0.0f), 0);
}

}  // namespace
}  // namespace tapedeck::kernels
