// Tests half_values.h, the oracle of other tests, against known numbers and by converting every bit pattern back.
#include <tapedeck/tests/engine/half_values.h>

#include <gtest/gtest.h>

namespace tapedeck::testing {
namespace {

TEST(HalfValues, EveryPatternComesBack) {
  for (DType d : {DType::f16, DType::bf16})
    for (int bits = 0; bits < 65536; ++bits) {
      const double v = half_value(d, static_cast<std::uint16_t>(bits));
      if (std::isnan(v)) continue;
      ASSERT_EQ(half_bits(d, v), bits) << dtype_name(d);
    }
}

TEST(HalfValues, KnownNumbers) {
  EXPECT_EQ(half_bits(DType::f16, 1), 0x3c00);
  EXPECT_EQ(half_bits(DType::f16, -2), 0xc000);
  EXPECT_EQ(half_bits(DType::f16, 65504), 0x7bff);
  EXPECT_EQ(half_bits(DType::f16, 0x1p-24), 0x0001);
  EXPECT_EQ(half_bits(DType::bf16, 1), 0x3f80);
  EXPECT_EQ(half_bits(DType::bf16, 3.140625), 0x4049);
  EXPECT_TRUE(std::isnan(half_value(DType::bf16, half_bits(DType::bf16, NAN))));
}

TEST(HalfValues, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(half_value(DType::f16, half_bits(DType::f16, 2049)), 2048);
  EXPECT_EQ(half_value(DType::f16, half_bits(DType::f16, 2051)), 2052);
  EXPECT_EQ(half_value(DType::f16, half_bits(DType::f16, 2049.001)), 2050);
  EXPECT_EQ(half_bits(DType::f16, 65519.9), 0x7bff);
  EXPECT_EQ(half_bits(DType::f16, 65520), 0x7c00) << "the tie goes to infinity";
  EXPECT_EQ(half_bits(DType::f16, 0x1p-25), 0) << "and this one to zero";
  EXPECT_EQ(half_bits(DType::f16, -0x1.8p-25), 0x8001);
  EXPECT_EQ(half_bits(DType::f16, 1e300), 0x7c00);
}

}  // namespace
}  // namespace tapedeck::testing
