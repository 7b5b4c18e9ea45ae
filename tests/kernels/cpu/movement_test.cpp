// Tests copy, concat, pad, full and one_hot, element by element.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr unsigned kMovementSeed = 5;
constexpr DType kAll[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean};

TEST(Copy, AnyLayoutToAnyLayoutOfAnyType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kMovementSeed);
  Random random(kMovementSeed);
  for (const DType dtype : kAll)
    for (int round = 0; round < 25; ++round) {
      const Sizes sizes = random_sizes(random, 4, 12);
      const Array x = scrambled(random, random_array(random, dtype, sizes, 0, 9));
      Array out = make_array(dtype, sizes);
      if (round % 3 == 0) out = scrambled(random, out);
      run(cpu::copy, {x}, {out});
      ASSERT_TRUE(same_bits(x, out));
    }
}

TEST(Copy, TransposedMatrices) {
  Random random(kMovementSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::u8, DType::f16})
    for (const Sizes& sizes : {Sizes{100, 37}, Sizes{3, 65, 33}, Sizes{2, 3, 16, 500}}) {
      const Array x = random_array(random, dtype, sizes, 0, 99);
      std::vector<int> axes;
      for (int d = 0; d < x.view.rank; ++d) axes.push_back(d);
      std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
      const Array turned = permuted(x, axes), one = dense_copy(turned), two = dense_copy(turned);
      std::memset(one.view.data, 0, static_cast<std::size_t>(one.numel()) * dtype_size(dtype));
      with_threads(2, [&] { run(cpu::copy, {turned}, {one}); });
      ASSERT_TRUE(same_bits(one, two));
    }
}

TEST(Concat, AlongEveryAxis) {
  Random random(kMovementSeed);
  for (const DType dtype : {DType::f32, DType::i64, DType::u8})
    for (int round = 0; round < 30; ++round) {
      Sizes sizes = random_sizes(random, 3, 6, 1);
      sizes.push_back(3);
      const auto axis = random() % sizes.size();
      std::vector<Array> parts;
      Sizes total = sizes;
      total[axis] = 0;
      for (int p = 0; p < 3; ++p) {
        Sizes part = sizes;
        part[axis] = static_cast<int>(random() % 4);
        total[axis] += part[axis];
        parts.push_back(scrambled(random, random_array(random, dtype, part, 0, 200)));
      }
      const Array out = make_array(dtype, total);
      AxisAttrs attrs;
      attrs.axis = static_cast<std::int64_t>(axis);
      run(cpu::concat, parts, {out}, &attrs);
      std::int64_t inner = 1;
      for (auto d = axis + 1; d < total.size(); ++d) inner *= total[d];
      for (std::int64_t i = 0; i < out.numel(); ++i) {
        std::int64_t index = i / inner % total[axis], part = 0;
        while (index >= parts[part].view.sizes[axis]) index -= parts[part++].view.sizes[axis];
        const std::int64_t length = parts[part].view.sizes[axis];
        ASSERT_EQ(out.get(i), parts[part].get((i / inner / total[axis] * length + index) * inner + i % inner));
      }
    }
}

TEST(Pad, ZerosAround) {
  Random random(kMovementSeed);
  const Array x = scrambled(random, random_array(random, DType::f32, {3, 4}, 1, 2)),
              out = random_array(random, DType::f32, {6, 5});
  PadAttrs attrs;
  attrs.before = {1, 0};
  attrs.after = {2, 1};
  run(cpu::pad, {x}, {out}, &attrs);
  for (std::int64_t r = 0; r < 6; ++r)
    for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(out.get(r * 5 + c), r >= 1 && r < 4 && c < 4 ? x.get((r - 1) * 4 + c) : 0);
}

TEST(Full, EveryType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    const Array out = make_array(dtype, {3, 5});
    FullAttrs attrs;
    attrs.value = 7;
    run(cpu::full, {}, {out}, &attrs);
    for (std::int64_t i = 0; i < 15; ++i) EXPECT_EQ(out.get(i), 7);
  }
  const Array truth = make_array(DType::boolean, {});
  FullAttrs attrs;
  attrs.value = 7;
  run(cpu::full, {}, {truth}, &attrs);
  EXPECT_EQ(truth.get(0), 1);
  run(cpu::full, {}, {make_array(DType::f32, {0})}, &attrs);
}

TEST(OneHot, RowsAndFaults) {
  OneHotAttrs attrs;
  attrs.classes = 4;
  for (const DType dtype : {DType::i32, DType::i64}) {
    const Array labels = array_of(dtype, {3}, {2, 0, 3}), out = make_array(DType::f32, {3, 4});
    EXPECT_EQ(run(cpu::one_hot, {labels}, {out}, &attrs).fault, nullptr);
    for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(out.get(i), labels.get(i / 4) == static_cast<double>(i % 4));
    labels.set(1, -5);
    const Outcome outcome = run(cpu::one_hot, {labels}, {out}, &attrs);
    EXPECT_STREQ(outcome.fault, "label out of range");
    EXPECT_EQ(outcome.value, -5);
  }
}

}  // namespace
}  // namespace tapedeck::testing
