// Tests f16 and bf16 against their definitions for every bit pattern, and rounding at and around every midpoint.
#include <tapedeck/kernels/half.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels {
namespace {

// The value of a bit pattern by the definition of IEEE 754.
double defined(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const double sign = (bits >> 15 & 1) ? -1 : 1;
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1u << exponent_bits) - 1)),
            bias = (1 << (exponent_bits - 1)) - 1;
  const double fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1)) / static_cast<double>(1u << fraction_bits);
  if (exponent == (1 << exponent_bits) - 1)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class H>
struct Format;
template <>
struct Format<F16> {
  static constexpr int kExponent = 5, kFraction = 10;
  static std::uint16_t from(float x) { return to_f16(x).bits; }
};
template <>
struct Format<Bf16> {
  static constexpr int kExponent = 8, kFraction = 7;
  static std::uint16_t from(float x) { return to_bf16(x).bits; }
};

template <class H>
struct Half : ::testing::Test {};
using Halves = ::testing::Types<F16, Bf16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryPatternHasItsValueAndComesBack) {
  using Of = Format<TypeParam>;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = defined(bits, Of::kExponent, Of::kFraction);
    const float value = to_f32(TypeParam{static_cast<std::uint16_t>(bits)});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(to_f32(TypeParam{Of::from(value)}))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(Of::from(value), bits);
  }
}

TYPED_TEST(Half, RoundsToNearestEven) {
  using Of = Format<TypeParam>;
  const std::uint32_t infinity = ((1u << Of::kExponent) - 1) << Of::kFraction;
  for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = defined(bits, Of::kExponent, Of::kFraction), high = defined(bits + 1, Of::kExponent, Of::kFraction);
    const float middle = static_cast<float>((low + high) / 2);
    if (static_cast<double>(middle) != (low + high) / 2) continue;  // f32 cannot represent this midpoint
    ASSERT_EQ(Of::from(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(Of::from(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(Of::from(std::nextafter(middle, std::numeric_limits<float>::infinity())), bits + 1) << bits;
    ASSERT_EQ(Of::from(-middle), (bits % 2 == 0 ? bits : bits + 1) | 0x8000u) << bits;
  }
}

TEST(HalfLimits, OverflowGoesToInfinity) {
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(to_f16(2.98e-8f).bits, 0x0000);
  EXPECT_EQ(to_f16(2.99e-8f).bits, 0x0001);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace tapedeck::kernels
