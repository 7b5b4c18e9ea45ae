// Tests Philox against its published vectors, and the random draws made from it.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/philox.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

using namespace kernels;

void expect_block(PhiloxBlock counter, PhiloxKey key, PhiloxBlock expected) {
  const PhiloxBlock drawn = philox(counter, key);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(drawn.word[i], expected.word[i]) << "word " << i;
}

TEST(Philox, KnownAnswers) {
  expect_block({{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  const std::uint32_t f = 0xffffffff;
  expect_block({{f, f, f, f}}, {f, f}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {0xa4093822, 0x299f31d0},
               {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

Array rng(std::int64_t seed, std::int64_t step) {
  return array_of(DType::i64, {2}, {static_cast<double>(seed), static_cast<double>(step)});
}

RandomAttrs attrs_of(DType dtype, double low, double high, const char* path) {
  RandomAttrs a;
  a.dtype = dtype;
  a.low = low;
  a.high = high;
  a.path = path;
  return a;
}

TEST(Random, UniformIsTheDocumentedStream) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array out = make_array(dtype, {1003});
    const RandomAttrs attrs = attrs_of(dtype, 0, 1, "net.dropout");
    run(cpu::uniform, {rng(42, 7)}, {out}, &attrs);
    const RandomStream stream = random_stream(42, 7, "net.dropout");
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const auto u = static_cast<std::uint64_t>(i);
      double expected;
      if (dtype == DType::f32) {
        expected = (stream.block(u / 4).word[i % 4] >> 8) / 16777216.0;
      } else {
        const PhiloxBlock b = stream.block(u / 2);
        const std::uint64_t bits = std::uint64_t{b.word[2 * (i % 2) + 1]} << 32 | b.word[2 * (i % 2)];
        expected = static_cast<double>(bits >> 11) / 9007199254740992.0;
      }
      ASSERT_EQ(out.get(i), expected) << i;
    }
  }
}

TEST(Random, MomentsAndRange) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array u = make_array(dtype, {200000}), z = make_array(dtype, {200000});
    const RandomAttrs uniform = attrs_of(dtype, -3, 5, "u"), normal = attrs_of(dtype, 2, 0.5, "z");
    run(cpu::uniform, {rng(1, 0)}, {u}, &uniform);
    run(cpu::normal, {rng(1, 0)}, {z}, &normal);
    double su = 0, sz = 0, szz = 0, szzzz = 0, pairs = 0;
    for (std::int64_t i = 0; i < u.numel(); ++i) {
      ASSERT_GE(u.get(i), -3);
      ASSERT_LT(u.get(i), 5);
      ASSERT_TRUE(std::isfinite(z.get(i)));
      const double d = (z.get(i) - 2) / 0.5;
      su += u.get(i), sz += d, szz += d * d, szzzz += d * d * d * d;
      if (i % 2) pairs += d * (z.get(i - 1) - 2) / 0.5;
    }
    const double n = 200000;
    EXPECT_NEAR(su / n, 1, 0.03);
    EXPECT_NEAR(sz / n, 0, 0.01);
    EXPECT_NEAR(szz / n, 1, 0.02);
    EXPECT_NEAR(szzzz / n, 3, 0.1);
    EXPECT_NEAR(pairs / (n / 2), 0, 0.015);
  }
}

TEST(Random, NormalIsBoxMullerOfTheUniforms) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array u = make_array(dtype, {4000}), z = make_array(dtype, {4000});
    const RandomAttrs attrs = attrs_of(dtype, 0, 1, "same");
    run(cpu::uniform, {rng(9, 3)}, {u}, &attrs);
    run(cpu::normal, {rng(9, 3)}, {z}, &attrs);
    const double tolerance = dtype == DType::f32 ? 2e-6 : 4e-15;
    for (std::int64_t i = 0; i < u.numel(); i += 2) {
      const double radius = std::sqrt(-2 * std::log(1 - u.get(i))), angle = 2 * M_PI * u.get(i + 1);
      ASSERT_NEAR(z.get(i), radius * std::cos(angle), tolerance) << i;
      ASSERT_NEAR(z.get(i + 1), radius * std::sin(angle), tolerance) << i;
    }
  }
}

TEST(Random, StreamsDifferAndRepeat) {
  const auto draw = [](std::int64_t seed, std::int64_t step, const char* path) {
    const Array out = make_array(DType::f32, {64});
    const RandomAttrs attrs = attrs_of(DType::f32, 0, 1, path);
    run(cpu::uniform, {rng(seed, step)}, {out}, &attrs);
    return out;
  };
  EXPECT_TRUE(same_bits(draw(1, 2, "a"), draw(1, 2, "a")));
  EXPECT_FALSE(same_bits(draw(1, 2, "a"), draw(2, 2, "a")));
  EXPECT_FALSE(same_bits(draw(1, 2, "a"), draw(1, 3, "a")));
  EXPECT_FALSE(same_bits(draw(1, 2, "a"), draw(1, 2, "b")));
}

TEST(Random, ThreadsDoNotChangeTheDraw) {
  const Array one = make_array(DType::f32, {200001}), two = make_array(DType::f32, {200001});
  const RandomAttrs attrs = attrs_of(DType::f32, 0, 1, "t");
  with_threads(1, [&] { run(cpu::normal, {rng(5, 5)}, {one}, &attrs); });
  with_threads(2, [&] { run(cpu::normal, {rng(5, 5)}, {two}, &attrs); });
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Random, DropoutKeepsAndScales) {
  Random random(3);
  const Array x = random_array(random, DType::f32, {100, 500}, 1, 2), out = make_array(DType::f32, {100, 500});
  const Array x64 = make_array(DType::f64, {100, 500}), out64 = make_array(DType::f64, {100, 500});
  for (std::int64_t i = 0; i < x.numel(); ++i) x64.set(i, x.get(i));
  DropoutAttrs attrs;
  attrs.p = 0.3;
  attrs.path = "drop";
  run(cpu::dropout, {x, rng(1, 1)}, {out}, &attrs);
  run(cpu::dropout, {x64, rng(1, 1)}, {out64}, &attrs);
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_TRUE(out.get(i) == 0 || out.get(i) == x.at<float>(i) * static_cast<float>(1 / 0.7));
    ASSERT_EQ(out.get(i) == 0, out64.get(i) == 0) << "the mask depends on the type";
    kept += out.get(i) != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 50000, 0.7, 0.01);
}

TEST(Random, DropoutOfNothing) {
  Random random(3);
  const Array x = random_array(random, DType::f32, {33}), out = make_array(DType::f32, {33});
  DropoutAttrs attrs;
  attrs.p = 0;
  run(cpu::dropout, {x, rng(1, 1)}, {out}, &attrs);
  EXPECT_TRUE(same_bits(x, out));
  run(cpu::dropout, {make_array(DType::f32, {0}), rng(1, 1)}, {make_array(DType::f32, {0})}, &attrs);
}

TEST(Random, NextStep) {
  const Array state = rng(77, 41);
  run(cpu::rng_next, {state}, {state});
  EXPECT_EQ(state.at<std::int64_t>(0), 77);
  EXPECT_EQ(state.at<std::int64_t>(1), 42);
}

}  // namespace
}  // namespace tapedeck::testing
