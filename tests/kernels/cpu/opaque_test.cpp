// Tests the op `opaque`: its result depends on every input byte, the number of the output and the position, and on nothing
// else.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

Array opaque_of(const std::vector<Array>& inputs, DType dtype = DType::u8, const Sizes& sizes = {64}) {
  const Array out = make_array(dtype, sizes);
  run(cpu::opaque, inputs, {out});
  return out;
}

TEST(Opaque, RepeatsAndIgnoresLayout) {
  Random random(1);
  const Array x = random_array(random, DType::f32, {9, 5, 7}), y = random_array(random, DType::u8, {13}, 0, 255);
  const Array out = opaque_of({x, y});
  EXPECT_TRUE(same_bits(out, opaque_of({x, y})));
  for (int round = 0; round < 10; ++round) EXPECT_TRUE(same_bits(out, opaque_of({scrambled(random, x), scrambled(random, y)})));
}

TEST(Opaque, EveryByteMatters) {
  Random random(2);
  const Array x = random_array(random, DType::u8, {21}, 0, 255);
  const Array out = opaque_of({x});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.at<std::uint8_t>(i) ^= 1;
    EXPECT_FALSE(same_bits(out, opaque_of({x}))) << i;
    x.at<std::uint8_t>(i) ^= 1;
  }
  EXPECT_FALSE(same_bits(out, opaque_of({x, x})));
  EXPECT_FALSE(same_bits(opaque_of({}), out));
}

TEST(Opaque, OutputsDifferAndThreadsDoNot) {
  const Array a = make_array(DType::i64, {100000}), b = make_array(DType::i64, {100000}), c = make_array(DType::i64, {100000});
  with_threads(1, [&] { run(cpu::opaque, {}, {a, b}); });
  with_threads(2, [&] { run(cpu::opaque, {}, {c}); });
  EXPECT_FALSE(same_bits(a, b));
  EXPECT_TRUE(same_bits(a, c));
}

TEST(Opaque, FloatsAreFiniteAndSmall) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array out = opaque_of({}, dtype, {1001});
    std::set<double> seen;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      ASSERT_GE(out.get(i), -1);
      ASSERT_LT(out.get(i), 1);
      seen.insert(out.get(i));
    }
    EXPECT_GT(seen.size(), 990u);
  }
  const Array half = opaque_of({}, DType::f16, {999}), brain = opaque_of({}, DType::bf16, {999});
  for (std::int64_t i = 0; i < 999; ++i) {
    ASSERT_LT(half.at<std::uint16_t>(i) & 0x7FFF, 0x3C00);
    ASSERT_LT(brain.at<std::uint16_t>(i) & 0x7FFF, 0x3F80);
  }
  const Array truth = opaque_of({}, DType::boolean, {100});
  for (std::int64_t i = 0; i < 100; ++i) ASSERT_LE(truth.get(i), 1);
}

TEST(Opaque, NothingInNothingOut) { opaque_of({make_array(DType::f32, {0})}, DType::f32, {0}); }

}  // namespace
}  // namespace tapedeck::testing
