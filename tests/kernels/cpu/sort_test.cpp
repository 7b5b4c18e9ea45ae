// Tests sorting and selection in lines of every short length, with many equal elements, NaN and both zeros, along both axes.
// The oracle is std::stable_sort with NaN above all numbers.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs/sort.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels::cpu {
void sort(const KernelCall& call);
void topk(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

constexpr unsigned kSortSeed = 5;

bool comes_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

std::vector<std::int64_t> sorted_places(const std::vector<double>& line, bool descending) {
  std::vector<std::int64_t> places(line.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i);
  std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
    return descending ? comes_before(line[b], line[a]) : comes_before(line[a], line[b]);
  });
  return places;
}

Array awkward_array(Random& random, DType dtype, const Sizes& sizes) {
  const Array x = make_array(dtype, sizes);
  const bool floats = dtype == DType::f32 || dtype == DType::f64;
  const double special[] = {0, -0.0, std::nan(""), std::numeric_limits<double>::infinity(), -1, 3};
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const unsigned kind = random() % 12;
    x.set(i, floats && kind < 6 ? special[kind] : static_cast<double>(random() % 90));
  }
  return x;
}

void expect_sorted(Random& random, DType dtype, std::int64_t n, bool descending) {
  const Array x = awkward_array(random, dtype, {2, n}), y = make_array(dtype, {2, n}), at = make_array(DType::i64, {2, n});
  SortAttrs attrs;
  attrs.axis = 1;
  attrs.descending = descending;
  const std::int64_t scratch = 2 * 2 * n * 16;
  run(kernels::cpu::sort, {x}, {y, at}, &attrs, scratch);
  const Array columns = dense_copy(permuted(x, {1, 0})), down = make_array(dtype, {n, 2}),
              down_at = make_array(DType::i64, {n, 2});
  attrs.axis = 0;
  run(kernels::cpu::sort, {columns}, {down, down_at}, &attrs, scratch);
  EXPECT_TRUE(same_bits(permuted(down, {1, 0}), y) && same_bits(permuted(down_at, {1, 0}), at));
  const std::vector<double> all = values(x);
  for (std::int64_t row = 0; row < 2; ++row) {
    const std::vector<double> line(all.begin() + row * n, all.begin() + (row + 1) * n);
    const std::vector<std::int64_t> places = sorted_places(line, descending);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(at.at<std::int64_t>(row * n + i), places[i]) << n << ", " << i;
      ASSERT_EQ(std::memcmp(y.address(row * n + i), x.address(row * n + places[i]), dtype_size(dtype)), 0);
    }
  }
}

TEST(SortKernel, ShortLinesOfEveryLength) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSortSeed);
  Random random(kSortSeed);
  for (std::int64_t n = 1; n < 300; n += n < 40 ? 1 : 23)
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8})
      for (const bool descending : {false, true}) expect_sorted(random, dtype, n, descending);
}

TEST(SortKernel, TheLeastAndTheLargest) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSortSeed);
  Random random(kSortSeed);
  for (const std::int64_t n : {1, 63, 64, 65, 1000, 5000})
    for (const std::int64_t k : {std::int64_t{1}, n / 2, n})
      for (const bool largest : {false, true}) {
        if (k == 0) continue;
        const Array x = awkward_array(random, DType::f32, {n}), y = make_array(DType::f32, {k}),
                    at = make_array(DType::i64, {k});
        TopkAttrs attrs;
        attrs.axis = 0;
        attrs.k = k;
        attrs.largest = largest;
        run(kernels::cpu::topk, {x}, {y, at}, &attrs, std::min(n, 2 * k + 64) * 16);
        const std::vector<std::int64_t> places = sorted_places(values(x), largest);
        for (std::int64_t i = 0; i < k; ++i) ASSERT_EQ(at.at<std::int64_t>(i), places[i]) << n << ", " << k << ", " << i;
      }
}

}  // namespace
}  // namespace tapedeck::testing
