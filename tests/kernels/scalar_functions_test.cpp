// Tests the f32 functions against long double, over all magnitudes and densely where they bend, and our own f64 functions.
#include <tapedeck/kernels/loss_scalar.h>
#include <tapedeck/kernels/scalar_activations.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapedeck::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// The distance in units of the last place of the exact result. For denormals the unit is the smallest float.
double ulps(float got, long double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded)) return got == rounded ? 0 : 1e9;
  const float magnitude = std::max(std::fabs(rounded), std::numeric_limits<float>::min());
  const long double ulp = static_cast<long double>(std::nextafter(magnitude, kInf)) - magnitude;
  return static_cast<double>(std::fabs((got - exact) / ulp));
}

// Sanitizers make long doubles slow, and find nothing in the one operand that they do not find in the next.
#ifdef TAPEDECK_SANITIZED
constexpr std::uint64_t kStepOfBits = 99991;
constexpr int kStepsOfRange = 20000;
#else
constexpr std::uint64_t kStepOfBits = 9973;
constexpr int kStepsOfRange = 200000;
#endif

// The worst distance over floats of all sizes and signs, and over [low, high] in small steps.
template <class F, class G>
double worst(F&& f, G&& exact, float low, float high) {
  double most = 0;
  for (std::uint64_t bits = 0; bits <= 0x7F800001u; bits += kStepOfBits)
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      const float x = bits_float(static_cast<std::uint32_t>(bits) | sign);
      most = std::max(most, ulps(f(x), exact(static_cast<long double>(x))));
    }
  for (int i = 0; i <= kStepsOfRange; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kStepsOfRange;
    most = std::max(most, ulps(f(x), exact(static_cast<long double>(x))));
  }
  return most;
}

#define EXPECT_WITHIN(bound, f, low, high) \
  EXPECT_LE(worst([](float x) { return f##_f32(x); }, [](long double x) { return std::f(x); }, low, high), bound) << #f

TEST(ScalarFunctions, WithinUlps) {
  EXPECT_WITHIN(1.5, exp2, -150, 128);
  EXPECT_WITHIN(2, expm1, -2, 2);
  EXPECT_WITHIN(1.5, log2, 0.5f, 2);
  EXPECT_WITHIN(2.5, log10, 0.5f, 2);
  EXPECT_WITHIN(1.5, log1p, -0.9f, 2);
  EXPECT_WITHIN(3, asin, -1, 1);
  EXPECT_WITHIN(2, acos, -1, 1);
  EXPECT_WITHIN(2.5, atan, -3, 3);
  EXPECT_WITHIN(2, sinh, -3, 3);
  EXPECT_WITHIN(2, cosh, -90, 90);
  EXPECT_WITHIN(2, asinh, -3, 3);
  EXPECT_WITHIN(2.5, acosh, 1, 3);
  EXPECT_WITHIN(2.5, atanh, -1, 1);
  EXPECT_WITHIN(1.5, erf, -4, 4);
  EXPECT_WITHIN(5, erfc, -3, 10.5f);
}

// Sums -1/x - 1/(x+1) - ... up to an argument from which the asymptotic series is exact to 18 digits.
long double digamma_of(long double x) {
  if (std::isinf(x) && x > 0) return x;
  if (x == 0) return std::signbit(x) ? kInf : -kInf;
  if (x < 0) {
    const long double fraction = x - std::rint(x);
    if (!(fraction != 0)) return kNan;
    return digamma_of(1 - x) - 3.14159265358979323846264338328L / std::tan(3.14159265358979323846264338328L * fraction);
  }
  if (!(x > 0)) return kNan;
  long double y = 0;
  for (; x < 40; x += 1) y -= 1 / x;
  const long double z = 1 / (x * x);
  return y + std::log(x) - 0.5L / x - z * (1.0L / 12 - z * (1.0L / 120 - z * (1.0L / 252 - z * (1.0L / 240 - z / 132))));
}
long double lgamma_of(long double x) { return x < 0 && x == std::rint(x) ? kInf : std::lgamma(x); }

// The functors whose polynomials do not cover all operands.
TEST(ScalarFunctions, UsualAndRareOperandsWithinUlps) {
  const auto sine = [](long double x) { return std::sin(x); };
  const auto cosine = [](long double x) { return std::cos(x); };
  const auto tangent = [](long double x) { return std::tan(x); };
  for (const float far : {4.0f, 300.0f, 1.01e5f}) {
    EXPECT_LE(worst(Sin{}, sine, -far, far), 1) << far;
    EXPECT_LE(worst(Cos{}, cosine, -far, far), 1) << far;
    EXPECT_LE(worst(Tan{}, tangent, -far, far), 2.5) << far;
  }
  EXPECT_LE(worst(Lgamma{}, lgamma_of, 0.01f, 4), 3.5);
  EXPECT_LE(worst(Lgamma{}, lgamma_of, 0.99f, 1.01f), 3.5);
  EXPECT_LE(worst(Lgamma{}, lgamma_of, 1.99f, 2.01f), 3.5);
  EXPECT_LE(worst(Lgamma{}, lgamma_of, 2.9f, 40), 3.5);
  EXPECT_LE(worst(Digamma{}, digamma_of, 0.01f, 4), 3.5);
  EXPECT_LE(worst(Digamma{}, digamma_of, 1.45f, 1.47f), 3.5);
  EXPECT_LE(worst(Digamma{}, digamma_of, 2.9f, 40), 3.5);
}

// The polynomials of neighbours of multiples of pi/2, where the remainder is smallest.
TEST(ScalarFunctions, SinesNearTheirZeros) {
  for (int n = -60000; n <= 60000; ++n) {
    const float near = static_cast<float>(n * 1.57079632679489661923);
    EXPECT_LE(ulps(Sin{}(near), std::sin(static_cast<long double>(near))), 1.5) << n;
    EXPECT_LE(ulps(Cos{}(near), std::cos(static_cast<long double>(near))), 1.5) << n;
    EXPECT_LE(ulps(Tan{}(near), std::tan(static_cast<long double>(near))), 2.5) << n;
  }
}

TEST(ScalarFunctions, Atan2WithinUlpsInEveryQuadrant) {
  double most = 0;
  for (int i = -300; i <= 300; ++i)
    for (int j = 0; j < 400; ++j) {
      const float a = static_cast<float>(i) * 0.0137f,
                  b = std::exp(static_cast<float>(j - 200) * 0.1f) * (j % 2 ? -1.0f : 1.0f);
      most = std::max(most, ulps(atan2_f32(a, b), std::atan2(static_cast<long double>(a), static_cast<long double>(b))));
    }
  EXPECT_LE(most, 2.5);
}

// Both operands take zeros of both signs, infinities, NaN, and magnitudes whose sum overflows.
TEST(ScalarFunctions, Atan2AgreesWithTheStandardAtItsEdges) {
  for (float a : {0.0f, -0.0f, 1.0f, -2.0f, 3e38f, 1e-45f, kInf, -kInf, kNan})
    for (float b : {0.0f, -0.0f, 1.0f, -2.0f, -3e38f, 1e-45f, kInf, -kInf, kNan}) {
      const float got = atan2_f32(a, b), exact = std::atan2(a, b);
      EXPECT_LE(ulps(got, exact), 2.5) << a << ", " << b;
      if (exact == exact) {
        EXPECT_EQ(std::signbit(got), std::signbit(exact)) << a << ", " << b;
      }
    }
}

TEST(ScalarFunctions, KeepTheSignOfZero) {
  for (const float y :
       {expm1_f32(-0.0f), log1p_f32(-0.0f), sinh_f32(-0.0f), asinh_f32(-0.0f), atanh_f32(-0.0f), asin_f32(-0.0f),
        atan_f32(-0.0f), erf_f32(-0.0f), erfinv_f32(-0.0f), Sin{}(-0.0f), Tan{}(-0.0f), Frac{}(-2.0f), Round{}(-0.5f)}) {
    EXPECT_EQ(y, 0);
    EXPECT_TRUE(std::signbit(y));
  }
}

TEST(ScalarFunctions, LgammaIsAPositiveZeroForOneAndTwo) {
  for (const float x : {1.0f, 2.0f}) EXPECT_EQ(float_bits(Lgamma{}(x)), 0u) << x;
}

TEST(ScalarFunctions, PowersComeOutExact) {
  for (int n = -126; n <= 127; ++n) {
    EXPECT_EQ(exp2_f32(static_cast<float>(n)), std::ldexp(1.0f, n));
    EXPECT_EQ(log2_f32(std::ldexp(1.0f, n)), static_cast<float>(n));
  }
  EXPECT_EQ(log10_f32(1000), 3);
}

TEST(ScalarFunctions, ErfinvInvertsErf) {
  for (double y = -5.5; y < 5.5; y += 0.01) {
    const double x = std::erf(y);
    EXPECT_NEAR(std::erf(erfinv_f64(x)), x, 4e-16 * std::fabs(x)) << y;
    if (std::fabs(y) < 3) {
      EXPECT_LE(ulps(erfinv_f32(static_cast<float>(x)), erfinv_f64(static_cast<float>(x))), 5) << y;
    }
  }
  EXPECT_NEAR(erfinv_f64(1e-300) / 1e-300, 0.886226925452758, 1e-15);
  EXPECT_EQ(erfinv_f64(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(erfinv_f32(-1), -kInf);
  EXPECT_TRUE(std::isnan(erfinv_f32(1.5f)) && std::isnan(erfinv_f64(-1.5)) && std::isnan(erfinv_f64(std::nan(""))));
}

// The oracles are closed forms: psi(1) = -gamma, psi(1/2) = -gamma - 2 log 2, trigamma(1) = pi^2/6, trigamma(1/2) = pi^2/2,
// psi2(1) = -2 zeta(3); and the recurrence psi_n(x + 1) = psi_n(x) + (-1)^n n! / x^(n+1), for points on both sides of zero.
TEST(ScalarFunctions, DigammaAndItsDerivatives) {
  const double gamma = 0.57721566490153286, pi = 3.14159265358979324;
  EXPECT_NEAR(digamma_f64(1), -gamma, 1e-15);
  EXPECT_NEAR(digamma_f64(0.5), -gamma - 2 * std::log(2.0), 4e-15);
  EXPECT_NEAR(digamma_f64(-1.5), digamma_f64(-0.5) + 1 / 1.5, 4e-15);
  EXPECT_EQ(digamma_f64(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(digamma_f64(-2)) && std::isnan(digamma_f64(std::nan(""))));
  EXPECT_NEAR(polygamma_f64(1, 1), pi * pi / 6, 1e-14);
  EXPECT_NEAR(polygamma_f64(1, 0.5), pi * pi / 2, 1e-14);
  EXPECT_NEAR(polygamma_f64(2, 1), -2 * 1.2020569031595943, 1e-14);
  for (int n = 1; n <= kMaxPolygamma; ++n)
    for (double x : {-3.3, -0.7, 0.4, 2.5}) {
      const double step = (n % 2 ? -1 : 1) * std::tgamma(n + 1.0) / std::pow(x, n + 1);
      const double here = polygamma_f64(n, x);
      EXPECT_NEAR(polygamma_f64(n, x + 1), here + step, 1e-11 * (std::fabs(here) + std::fabs(step))) << n << ", " << x;
    }
  EXPECT_EQ(polygamma_f64(1, -2), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(polygamma_f64(2, -2)));
}

TEST(ScalarFunctions, DivisionsAgreeWithPython) {
  const double a[] = {7, -7, 7, -7, 6, -6}, b[] = {3, 3, -3, -3, 3, -3}, r[] = {1, 2, -2, -1, 0, -0.0},
               q[] = {2, -3, -3, 2, 2, 2};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(Remainder{}(a[i], b[i]), r[i]);
    EXPECT_EQ(FloorDivide{}(a[i], b[i]), q[i]);
    const auto x = static_cast<std::int32_t>(a[i]), y = static_cast<std::int32_t>(b[i]);
    EXPECT_EQ(Remainder{}(x, y), static_cast<std::int32_t>(r[i]));
    EXPECT_EQ(FloorDivide{}(x, y), static_cast<std::int32_t>(q[i]));
    EXPECT_EQ(Fmod{}(x, y), x % y);
  }
  EXPECT_EQ(FloorDivide{}(1.0, 0.1), 9);  // the double 0.1 is slightly more than a tenth
  EXPECT_EQ(FloorDivide{}(-1.0, 0.0), -std::numeric_limits<double>::infinity());
  const std::int32_t lowest = std::numeric_limits<std::int32_t>::lowest();
  EXPECT_EQ(FloorDivide{}(lowest, -1), lowest);
  EXPECT_EQ(Remainder{}(lowest, -1), 0);
  EXPECT_EQ(Fmod{}(lowest, -1), 0);
  EXPECT_EQ(Remainder{}(std::uint8_t{200}, std::uint8_t{7}), 4);
}

bool same_float(float a, float b) { return std::isnan(a) ? std::isnan(b) : float_bits(a) == float_bits(b); }

// The oracle is fmod of the C library, which is exact. The quotients have all sizes and signs, and many are next to an integer.
TEST(ScalarFunctions, RemaindersOfFloatsAreExact) {
  std::uint64_t state = 88172645463325252u;
  const auto next = [&state] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  const auto check = [](float a, float b) {
    const float exact = std::fmod(a, b);
    ASSERT_TRUE(same_float(Fmod{}(a, b), exact)) << a << ", " << b;
    const float signed_zero = std::copysign(0.0f, b);
    const float python = exact == 0 ? signed_zero : (exact < 0) != (b < 0) ? exact + b : exact;
    ASSERT_TRUE(same_float(Remainder{}(a, b), python)) << a << ", " << b;
    if (!Remainder{}.rare(a, b)) {
      ASSERT_TRUE(same_float(Remainder{}.usual(a, b), python)) << a << ", " << b;
      ASSERT_TRUE(same_float(Fmod{}.usual(a, b), exact)) << a << ", " << b;
      const double floor = std::floor(static_cast<double>(a) / static_cast<double>(b));
      ASSERT_EQ(FloorDivide{}(a, b), static_cast<float>(floor)) << a << ", " << b;
    }
  };
  for (const float a : {0.0f, -0.0f, 1.0f, -1.0f, 7.5f, 1e-45f, -1e-45f, 3e38f, kInf, -kInf, kNan})
    for (const float b : {0.0f, -0.0f, 1.0f, -1.0f, 2.5f, 1e-45f, -1e-45f, 3e38f, kInf, -kInf, kNan}) check(a, b);
  for (int i = 0; i < kStepsOfRange; ++i) {
    const float b = bits_float(static_cast<std::uint32_t>(next() >> 32)), k = static_cast<float>(next() % 5000000);
    const float near = b * k, any = b * std::exp2(static_cast<float>(next() % 3000) * 0.01f - 4);
    for (const float a : {near, std::nextafter(near, kInf), std::nextafter(near, -kInf), any, -any}) check(a, b);
  }
}

// A functor in two stages gives the bits of one call.
template <class F>
void expect_stages(const F& f) {
  for (std::uint64_t bits = 0; bits <= 0x7F800001u; bits += 10 * kStepOfBits)
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const float x = bits_float(static_cast<std::uint32_t>(bits) | sign);
      ASSERT_TRUE(same_float(f.finish(f.begin(x), x), f(x))) << x;
    }
}
template <class F>
void expect_stages_of_two(const F& f) {
  for (std::uint64_t bits = 0; bits <= 0x7F800001u; bits += 10 * kStepOfBits)
    for (const float y : {0.25f, 1.0f, -3.0f, 1e-30f, kInf}) {
      const float x = bits_float(static_cast<std::uint32_t>(bits));
      ASSERT_TRUE(same_float(f.finish(f.begin(x, y), x, y), f(x, y))) << x << ", " << y;
      ASSERT_TRUE(same_float(f.finish(f.begin(-x, y), -x, y), f(-x, y))) << -x << ", " << y;
    }
}
TEST(ScalarFunctions, StagesGiveTheBitsOfOneCall) {
  expect_stages(Tanh{});
  expect_stages(Sigmoid{});
  expect_stages(Erf{});
  expect_stages(Silu{});
  expect_stages(GeluTanh{});
  expect_stages(LogSigmoid{});
  expect_stages(Softplus<float>{1.5f, 1 / 1.5f, 20});
  expect_stages_of_two(SiluGrad{});
  expect_stages_of_two(GeluTanhGrad{});
  expect_stages_of_two(LogAddExp{});
  expect_stages_of_two(BinaryCrossEntropy{});
  expect_stages_of_two(BinaryCrossEntropyWithLogits{});
  expect_stages_of_two(Pow{});
}

TEST(ScalarFunctions, LogAddExpWithinUlps) {
  double most = 0;
  for (int i = -400; i <= 400; ++i)
    for (int j = 0; j < 400; ++j) {
      const float a = static_cast<float>(i) * 0.0637f, b = a + static_cast<float>(j - 200) * 0.0931f;
      const long double exact = std::max(a, b) + std::log1p(std::exp(-std::fabs(static_cast<long double>(a) - b)));
      if (std::fabs(exact) > 0.5) most = std::max(most, ulps(LogAddExp{}(a, b), exact));
    }
  EXPECT_LE(most, 3);
}

TEST(ScalarFunctions, ShiftsOfAnyCount) {
  EXPECT_EQ(LeftShift{}(3, 4), 48);
  EXPECT_EQ(LeftShift{}(-1, 31), std::numeric_limits<std::int32_t>::lowest());
  EXPECT_EQ(LeftShift{}(1, 32), 0);
  EXPECT_EQ(LeftShift{}(std::uint8_t{255}, std::uint8_t{1}), 254);
  EXPECT_EQ(RightShift{}(-5, 1), -3);
  EXPECT_EQ(RightShift{}(-5, 99), -1);
  EXPECT_EQ(RightShift{}(std::uint8_t{255}, std::uint8_t{8}), 0);
}

TEST(ScalarFunctions, InfinitiesAndNan) {
  EXPECT_EQ(LogAddExp{}(-kInf, -kInf), -kInf);
  EXPECT_EQ(LogAddExp{}(kInf, kInf), kInf);
  EXPECT_EQ(LogAddExp{}(-kInf, 3.0f), 3);
  EXPECT_EQ(LogAddExp{}(1000.0f, 1000.0f), 1000.0f + std::log(2.0f));
  EXPECT_EQ(Hypot{}(3e38f, 0.0f), 3e38f);
  EXPECT_EQ(Hypot{}(kNan, -kInf), kInf);
  EXPECT_EQ(expm1_f32(-kInf), -1);
  EXPECT_EQ(softplus_of(-kInf), 0);
  EXPECT_EQ(softplus_of(kInf), kInf);
  EXPECT_EQ(Gelu{}(-20.0f), 0);
  EXPECT_EQ(Mish{}(1e30f), 1e30f);
  EXPECT_FALSE((IsClose{1, 1, false}(kInf, -kInf)));
  EXPECT_TRUE((IsClose{0, 0, false}(kInf, kInf)));
  EXPECT_FALSE((IsClose{1, 1, false}(kNan, kNan)));
  EXPECT_TRUE((IsClose{0, 0, true}(kNan, kNan)));
  for (const float y : {expm1_f32(kNan),
                        exp2_f32(kNan),
                        log1p_f32(kNan),
                        erf_f32(kNan),
                        erfc_f32(kNan),
                        asinh_f32(kNan),
                        asin_f32(kNan),
                        acos_f32(kNan),
                        acosh_f32(kNan),
                        sinh_f32(kNan),
                        cosh_f32(kNan),
                        Clamp<float>{0, 1}(kNan),
                        Gelu{}(kNan),
                        Silu{}(kNan),
                        Mish{}(kNan),
                        softplus_of(kNan),
                        HardShrink<float>{1}(kNan),
                        SoftShrink<float>{1}(kNan),
                        HardSwish{}(kNan),
                        Elu<float>{1, 1, 1}(kNan),
                        Threshold<float>{0, 0}(kNan),
                        LogAddExp{}(kNan, 1.0f),
                        acosh_f32(0.5f),
                        acosh_f32(-3),
                        asin_f32(1.5f),
                        atanh_f32(2),
                        log1p_f32(-2)})
    EXPECT_TRUE(std::isnan(y));
}

// The left tail must not lose digits. The formulas 1 + erf and 1 + tanh would cancel there.
TEST(ScalarFunctions, GatesKeepTheirTails) {
  const auto gelu = [](long double x) { return x * 0.5L * std::erfc(-x * 0.707106781186547524400844L); };
  const auto silu = [](long double x) { return x / (1 + std::exp(-x)); };
  for (float x = -13; x < 5; x += 0.0037f) {
    EXPECT_LE(ulps(Gelu{}(x), gelu(x)), 8) << x;
    EXPECT_LE(ulps(Silu{}(x), silu(x)), 5) << x;
  }
}

}  // namespace
}  // namespace tapedeck::kernels
