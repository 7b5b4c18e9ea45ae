// Tests products of f16 and bf16 against sums in double precision of the same numbers, by every way that this processor has.
// Layouts, gaps between rows and threads must not change the bits.
#include <tapedeck/tests/kernels/halves.h>
#include <tapedeck/tests/kernels/matrices.h>
#include <tapedeck/tests/kernels/views.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
using cpu::HalfProducts;

using HalfKernel = void (*)(const KernelCall&, HalfProducts);

Array half_result(HalfKernel kernel, HalfProducts way, const std::vector<Array>& operands, const Sizes& sizes) {
  const Array c = make_array(operands[0].view.dtype, sizes);
  std::vector<View> views;
  for (const Array& a : operands) views.push_back(a.view);
  views.push_back(c.view);
  KernelFault fault;
  KernelCall call;
  call.inputs = views.data();
  call.outputs = views.data() + operands.size();
  call.n_inputs = static_cast<std::int32_t>(operands.size());
  call.n_outputs = 1;
  call.fault = &fault;
  kernel(call, way);
  EXPECT_EQ(fault.what.load(), nullptr);
  return c;
}

// Each element of c must be within half a unit in its last place of the exact sum, and the error of the f32 sums.
void expect_sums(const Array& a, const Array& b, const Array& c) {
  const std::int64_t m = c.view.sizes[c.view.rank - 2], n = c.view.sizes[c.view.rank - 1], k = a.view.sizes[a.view.rank - 1];
  const double half_unit = c.view.dtype == DType::bf16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -11);
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    const std::int64_t batch = i / (m * n), row = i / n % m, col = i % n;
    double total = 0, size = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double term = static_cast<double>(half_value(a, (batch * m + row) * k + p)) *
                          static_cast<double>(half_value(b, (batch * k + p) * n + col));
      total += term, size += std::fabs(term);
    }
    ASSERT_NEAR(half_value(c, i), total, std::fabs(total) * half_unit + size * 2e-6) << m << "x" << n << "x" << k << " " << i;
  }
}

struct ProductSizes {
  std::int64_t m, n, k;
};
// Sizes around the blocks of the kernels: odd inner sizes, panels of 32 columns, cells of 12 and 4 rows, tiles of 128 and 256.
constexpr ProductSizes kProductSizes[] = {{1, 1, 1},      {1, 10, 64},     {3, 3, 7},    {12, 32, 16},
                                          {17, 33, 101},  {20, 300, 257},  {300, 1, 30}, {5, 7, 1000},
                                          {130, 260, 43}, {129, 257, 515}, {64, 40, 18}};

TEST(HalfProducts, AreCloseToExactSumsInEveryLayout) {
  Random random(91);
  for (const HalfWay& w : ways_of_this_processor())
    for (const auto& [m, n, k] : kProductSizes) {
      const Array a = random_halves(random, w.dtype, {m, k}), b = random_halves(random, w.dtype, {k, n});
      const Array c = half_result(cpu::matmul_half, w.way, {a, b}, {m, n});
      expect_sums(a, b, c);
      for (const Array& left : {column_major(a), gapped(a, k + 3), scrambled(random, a)})
        for (const Array& right : {b, column_major(b), gapped(b, n + 1), scrambled(random, b)})
          ASSERT_TRUE(same_bits(c, half_result(cpu::matmul_half, w.way, {left, right}, {m, n}))) << m << "x" << n << "x" << k;
    }
}

TEST(HalfProducts, OfBatchesThatBroadcast) {
  Random random(92);
  for (const HalfWay& w : ways_of_this_processor()) {
    const Array a = broadcast(random_halves(random, w.dtype, {3, 1, 5, 6}), {3, 4, 5, 6});
    const Array b = broadcast(random_halves(random, w.dtype, {4, 6, 7}), {3, 4, 6, 7});
    expect_sums(a, b, half_result(cpu::matmul_half, w.way, {a, b}, {3, 4, 5, 7}));
  }
}

// With more than sixteen tiles the tiles of pairs are taller.
TEST(HalfProducts, ThreadsDoNotChangeTheBits) {
  Random random(93);
  for (const HalfWay& w : ways_of_this_processor()) {
    const Array a = random_halves(random, w.dtype, {1100, 20}), b = random_halves(random, w.dtype, {20, 1100});
    Array one, two;
    with_threads(1, [&] { one = half_result(cpu::matmul_half, w.way, {a, b}, {1100, 1100}); });
    with_threads(2, [&] { two = half_result(cpu::matmul_half, w.way, {a, b}, {1100, 1100}); });
    expect_sums(a, b, one);
    EXPECT_TRUE(same_bits(one, two));
  }
}

// The sum of pairs depends on its row and its column alone, whatever else the product computes.
TEST(HalfProducts, OfPairsHaveTheBitsOfSmallerProducts) {
  if (!cpu::multiplies_bf16_pairs()) GTEST_SKIP() << "this processor does not multiply pairs of bf16";
  Random random(94);
  const std::int64_t m = 40, n = 70, k = 600;
  const Array a = random_halves(random, DType::bf16, {m, k}), b = random_halves(random, DType::bf16, {k, n});
  const Array all = half_result(cpu::matmul_half, HalfProducts::pairs, {a, b}, {m, n});
  Array row = a, col = b;
  row.view.sizes[0] = 1, col.view.sizes[1] = 1;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; j += 9) {
      row.view.data = a.address(i * k), col.view.data = b.address(j);
      const Array one = half_result(cpu::matmul_half, HalfProducts::pairs, {row, col}, {1, 1});
      ASSERT_EQ(one.at<std::uint16_t>(0), all.at<std::uint16_t>(i * n + j)) << i << " " << j;
    }
}

TEST(HalfProducts, AddmmRoundsTheProductAndThenTheSum) {
  Random random(95);
  for (const HalfWay& w : ways_of_this_processor()) {
    const Array a = random_halves(random, w.dtype, {30, 21}), b = random_halves(random, w.dtype, {21, 50}),
                old = random_halves(random, w.dtype, {30, 50});
    const Array product = half_result(cpu::matmul_half, w.way, {a, b}, {30, 50});
    const Array sum = half_result(cpu::addmm_half, w.way, {old, a, b}, {30, 50});
    for (std::int64_t i = 0; i < sum.numel(); ++i)
      ASSERT_EQ(sum.at<std::uint16_t>(i), half_bits(w.dtype, half_value(old, i) + half_value(product, i))) << i;
  }
}

TEST(HalfProducts, LinearTakesAnyStridesAndRoundsOnceAfterTheBias) {
  Random random(96);
  for (const HalfWay& w : ways_of_this_processor()) {
    const Array x = random_halves(random, w.dtype, {4, 7, 19}), b = random_halves(random, w.dtype, {19, 45}),
                bias = random_halves(random, w.dtype, {45});
    Array rows = x;
    rows.view.rank = 2, rows.view.sizes[0] = 28, rows.view.sizes[1] = 19, rows.view.strides[0] = 19, rows.view.strides[1] = 1;
    const Array plain = half_result(cpu::linear_half, w.way, {x, b}, {4, 7, 45});
    EXPECT_TRUE(same_bits(half_result(cpu::linear_half, w.way, {scrambled(random, x), column_major(b)}, {4, 7, 45}), plain));
    EXPECT_EQ(std::memcmp(plain.view.data, half_result(cpu::matmul_half, w.way, {rows, b}, {28, 45}).view.data, 28 * 45 * 2),
              0);
    // With the bias as one more row of the weights, the product is the same but for the order of the sum.
    Array wide_x = make_array(w.dtype, {28, 20}), wide_b = make_array(w.dtype, {20, 45});
    for (std::int64_t i = 0; i < 28; ++i)
      for (std::int64_t p = 0; p < 20; ++p)
        wide_x.at<std::uint16_t>(i * 20 + p) = p < 19 ? x.at<std::uint16_t>(i * 19 + p) : half_bits(w.dtype, 1);
    for (std::int64_t i = 0; i < 20 * 45; ++i)
      wide_b.at<std::uint16_t>(i) = i < 19 * 45 ? b.at<std::uint16_t>(i) : bias.at<std::uint16_t>(i - 19 * 45);
    Array biased = half_result(cpu::linear_half, w.way, {x, b, bias}, {4, 7, 45});
    biased.view = make_array(w.dtype, {28, 45}).view, biased.view.data = biased.storage->data();
    expect_sums(wide_x, wide_b, biased);
  }
}

TEST(HalfProducts, OfNoProductsAreZeroAndOfNanAreNan) {
  for (const HalfWay& w : ways_of_this_processor()) {
    const Array none = half_result(cpu::matmul_half, w.way, {make_array(w.dtype, {2, 0}), make_array(w.dtype, {0, 3})}, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(none.at<std::uint16_t>(i), 0);
    const Array a = make_array(w.dtype, {40, 40}), b = make_array(w.dtype, {40, 40});
    a.at<std::uint16_t>(0) = half_bits(w.dtype, INFINITY);
    EXPECT_TRUE(std::isnan(half_value(half_result(cpu::matmul_half, w.way, {a, b}, {40, 40}), 0)));
  }
}

}  // namespace
}  // namespace tapedeck::testing
