// Tests reductions over every set of axes against sums in double precision. Layout and threads must not change a bit.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels::cpu {
void argmin(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr unsigned kReduceSeed = 911;

bool contains(const Ints& axes, int d) {
  for (const std::int64_t a : axes)
    if (a == d) return true;
  return false;
}

Sizes reduced_sizes(const Array& x, const Ints& axes) {
  Sizes sizes;
  for (int d = 0; d < x.view.rank; ++d)
    if (!contains(axes, d)) sizes.push_back(x.view.sizes[d]);
  return sizes;
}

// For each result, the flat indices of the elements of x that it reduces, in order.
std::vector<std::vector<std::int64_t>> groups(const Array& x, const Ints& axes, std::int64_t results) {
  std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(results));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t rest = i, result = 0, step = 1;
    for (int d = x.view.rank - 1; d >= 0; --d) {
      const std::int64_t index = rest % x.view.sizes[d];
      rest /= x.view.sizes[d];
      if (contains(axes, d)) continue;
      result += index * step;
      step *= x.view.sizes[d];
    }
    all[result].push_back(i);
  }
  return all;
}

Ints random_axes(Random& random, int rank) {
  Ints axes;
  for (int d = 0; d < rank; ++d)
    if (random() % 2) axes.push_back(d);
  if (axes.size == 0) axes.push_back(static_cast<int>(random() % static_cast<unsigned>(rank)));
  return axes;
}

void check_reduce(Random& random, DType dtype, const Sizes& sizes, const Ints& axes) {
  const Array x = random_array(random, dtype, sizes, -9, 9);
  const Array moved = scrambled(random, x);
  ReduceAttrs attrs;
  attrs.axes = axes;
  const Sizes out_sizes = reduced_sizes(x, axes);
  const Array sum = make_array(dtype, out_sizes), again = make_array(dtype, out_sizes), top = make_array(dtype, out_sizes),
              low = make_array(dtype, out_sizes);
  run(cpu::sum, {x}, {sum}, &attrs);
  with_threads(1, [&] { run(cpu::sum, {moved}, {again}, &attrs); });
  ASSERT_TRUE(same_bits(sum, again));
  run(cpu::max, {moved}, {top}, &attrs);
  run(cpu::min, {x}, {low}, &attrs);
  const auto elements = groups(x, axes, sum.numel());
  const std::vector<double> all = values(x);
  for (std::int64_t r = 0; r < sum.numel(); ++r) {
    double total = 0, size = 0, largest = -1e30, smallest = 1e30;
    for (const std::int64_t i : elements[r]) {
      const double element = all[i];
      total += element, size += std::fabs(element);
      largest = std::max(largest, element), smallest = std::min(smallest, element);
    }
    ASSERT_NEAR(sum.get(r), total, dtype == DType::f32 ? size * 4e-7 : size * 1e-15);
    if (!elements[r].empty()) {
      ASSERT_EQ(top.get(r), largest);
      ASSERT_EQ(low.get(r), smallest);
    }
  }
}

TEST(Reduce, RandomShapesAndAxes) {
  SCOPED_TRACE(::testing::Message() << "seed " << kReduceSeed);
  Random random(kReduceSeed);
  for (int round = 0; round < 150; ++round) {
    Sizes sizes = random_sizes(random, round % 3 ? 3 : 1, round % 3 ? 9 : 70);
    sizes.push_back(static_cast<int>(random() % 70));
    const DType dtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64};
    check_reduce(random, dtypes[round % 4], sizes, random_axes(random, static_cast<int>(sizes.size())));
  }
}

TEST(Reduce, LongRowsAndTallColumns) {
  SCOPED_TRACE(::testing::Message() << "seed " << kReduceSeed);
  Random random(kReduceSeed);
  check_reduce(random, DType::f32, {300001}, {0});
  check_reduce(random, DType::f32, {3, 50000}, {1});
  check_reduce(random, DType::f32, {50000, 3}, {0});
  check_reduce(random, DType::f32, {2000, 100}, {0});
  check_reduce(random, DType::f32, {64, 16, 8, 8}, {0, 2, 3});
  check_reduce(random, DType::f64, {5, 7, 300, 11}, {0, 2});
}

TEST(Reduce, ThreadsDoNotChangeTheBits) {
  Random random(kReduceSeed);
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}}) {
    const Array x = random_array(random, DType::f32, {700, 900});
    ReduceAttrs attrs;
    attrs.axes = axes;
    const Sizes sizes = reduced_sizes(x, axes);
    const Array one = make_array(DType::f32, sizes), two = make_array(DType::f32, sizes);
    with_threads(1, [&] { run(cpu::sum, {x}, {one}, &attrs); });
    with_threads(2, [&] { run(cpu::sum, {x}, {two}, &attrs); });
    EXPECT_TRUE(same_bits(one, two));
  }
}

TEST(Reduce, BroadcastInput) {
  const Array x = broadcast(array_of(DType::f32, {1}, {0.5}), {40, 50}), out = make_array(DType::f32, {});
  ReduceAttrs attrs;
  attrs.axes = {0, 1};
  run(cpu::sum, {x}, {out}, &attrs);
  EXPECT_EQ(out.get(0), 1000);
}

TEST(Reduce, AccurateOverAMillion) {
  const Array x = broadcast(array_of(DType::f32, {1}, {0.1}), {1 << 20}), out = make_array(DType::f32, {});
  ReduceAttrs attrs;
  attrs.axes = {0};
  run(cpu::mean, {x}, {out}, &attrs);
  EXPECT_NEAR(out.get(0), 0.1, 1e-7);  // adding one element after the other would be off by 1e-3
}

TEST(Reduce, EmptyAxes) {
  ReduceAttrs attrs;
  attrs.axes = {0};
  const Array nothing = make_array(DType::f32, {0, 3}), out = array_of(DType::f32, {3}, {7, 7, 7});
  EXPECT_EQ(run(cpu::sum, {nothing}, {out}, &attrs).fault, nullptr);
  EXPECT_EQ(out.get(0), 0);
  EXPECT_EQ(run(cpu::mean, {nothing}, {out}, &attrs).fault, nullptr);
  EXPECT_TRUE(std::isnan(out.get(1)));
  EXPECT_NE(run(cpu::max, {nothing}, {out}, &attrs).fault, nullptr);
  attrs.axes = {1};
  EXPECT_EQ(run(cpu::max, {nothing}, {make_array(DType::f32, {0})}, &attrs).fault, nullptr);
}

TEST(Reduce, MaximumPropagatesNan) {
  ReduceAttrs attrs;
  attrs.axes = {0};
  for (std::int64_t at : {0, 5, 99}) {
    const Array x = make_array(DType::f32, {100}), out = make_array(DType::f32, {});
    x.set(at, std::numeric_limits<double>::quiet_NaN());
    run(cpu::max, {x}, {out}, &attrs);
    EXPECT_TRUE(std::isnan(out.get(0)));
    run(cpu::min, {x}, {out}, &attrs);
    EXPECT_TRUE(std::isnan(out.get(0)));
  }
}

TEST(Reduce, IntegerSumsWrap) {
  const Array x = array_of(DType::i32, {2}, {2147483647.0, 1}), out = make_array(DType::i32, {});
  ReduceAttrs attrs;
  attrs.axes = {0};
  run(cpu::sum, {x}, {out}, &attrs);
  EXPECT_EQ(out.get(0), -2147483648.0);
}

TEST(Argmax, FirstOfTheLargest) {
  Random random(kReduceSeed);
  for (int round = 0; round < 60; ++round) {
    Sizes sizes = random_sizes(random, 2, 6);
    const int axis = static_cast<int>(random() % (sizes.size() + 1));
    sizes.insert(sizes.begin() + axis, 1 + static_cast<int>(random() % 9));
    Array x = random_array(random, DType::i32, sizes, -3, 3);
    if (round % 2) x = scrambled(random, x);
    Ints axes = {axis};
    AxisAttrs attrs;
    attrs.axis = axis;
    const Array out = make_array(DType::i64, reduced_sizes(x, axes));
    run(cpu::argmax, {x}, {out}, &attrs);
    const auto elements = groups(x, axes, out.numel());
    for (std::int64_t r = 0; r < out.numel(); ++r) {
      const auto& row = elements[r];
      const auto best = std::max_element(row.begin(), row.end(), [&](auto a, auto b) { return x.get(a) < x.get(b); });
      ASSERT_EQ(out.at<std::int64_t>(r), best - row.begin());
    }
  }
}

// The first place of the extreme of a line, found one element after the other.
std::int64_t first_place(const std::vector<double>& line, bool largest) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < line.size(); ++i) {
    const double a = line[i], b = line[best];
    if ((largest ? a > b : a < b) || (std::isnan(a) && !std::isnan(b))) best = i;
  }
  return static_cast<std::int64_t>(best);
}

// Lines of n elements along the last axis, along the first axis of dense memory, and with gaps, each with ties; `nan_at` holds
// a NaN, unless it is negative.
void check_argmax(Random& random, DType dtype, std::int64_t n, std::int64_t nan_at) {
  const std::int64_t rows = 11;
  const Array x = random_array(random, dtype, {rows, n}, 0, n < 100 ? 5 : 200);
  for (std::int64_t i = 0; dtype != DType::f64 && i < x.numel(); ++i) x.set(i, std::floor(x.get(i)));
  if (nan_at >= 0) x.set(3 * n + nan_at, std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> all = values(x);
  const Array down = dense_copy(permuted(x, {1, 0}));
  for (const bool largest : {true, false}) {
    const Kernel kernel = largest ? cpu::argmax : cpu::argmin;
    AxisAttrs last, first;
    last.axis = 1;
    first.axis = 0;
    const Array along = make_array(DType::i64, {rows}), across = make_array(DType::i64, {rows}),
                gapped = make_array(DType::i64, {rows});
    run(kernel, {x}, {along}, &last);
    run(kernel, {down}, {across}, &first);
    run(kernel, {scrambled(random, x)}, {gapped}, &last);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t expected = first_place({all.begin() + r * n, all.begin() + (r + 1) * n}, largest);
      ASSERT_EQ(along.at<std::int64_t>(r), expected) << n << ", row " << r;
      ASSERT_EQ(across.at<std::int64_t>(r), expected) << n << ", row " << r;
      ASSERT_EQ(gapped.at<std::int64_t>(r), expected) << n << ", row " << r;
    }
  }
}

TEST(Argmax, LongLinesOfEveryTypeAndLayout) {
  SCOPED_TRACE(::testing::Message() << "seed " << kReduceSeed);
  Random random(kReduceSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8})
    for (const std::int64_t n : {1, 2, 31, 32, 33, 1023, 1024, 1025, 3000}) {
      check_argmax(random, dtype, n, -1);
      if (dtype == DType::f32 || dtype == DType::f64) check_argmax(random, dtype, n, n / 2);
    }
}

TEST(Argmax, InfinitiesAndZeros) {
  const double inf = std::numeric_limits<double>::infinity();
  AxisAttrs attrs;
  attrs.axis = 1;
  const Array out = make_array(DType::i64, {2});
  run(cpu::argmax, {array_of(DType::f32, {2, 3}, {-inf, -inf, -inf, -1, -0.0, 0})}, {out}, &attrs);
  EXPECT_EQ(values(out), (std::vector<double>{0, 1}));
  run(cpu::argmin, {array_of(DType::f32, {2, 3}, {inf, inf, inf, 1, 0, -0.0})}, {out}, &attrs);
  EXPECT_EQ(values(out), (std::vector<double>{0, 1}));
}

TEST(Argmax, NanWinsAndNothingIsAFault) {
  AxisAttrs attrs;
  attrs.axis = 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array x = array_of(DType::f32, {4}, {1, nan, 5, nan}), out = make_array(DType::i64, {});
  run(cpu::argmax, {x}, {out}, &attrs);
  EXPECT_EQ(out.get(0), 1);
  EXPECT_NE(run(cpu::argmax, {make_array(DType::f32, {0})}, {out}, &attrs).fault, nullptr);
}

}  // namespace
}  // namespace tapedeck::testing
