// Tests scans along the last axis, forwards and backwards, and along the first. The oracles go element by element (running
// sums: block by block), so every way through a kernel must give their bits: lines alone, lines together, lines side by side.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs/scan.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels::cpu {
void cumsum(const KernelCall& call);
void cumprod(const KernelCall& call);
void logcumsumexp(const KernelCall& call);
void cummax(const KernelCall& call);
void cummin(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

constexpr unsigned kScanSeed = 77;

// The type in which sums of blocks are added.
template <class T>
struct TotalOf {
  using type = T;
};
template <>
struct TotalOf<float> {
  using type = double;
};

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  else
    return a + b;
}

template <class T>
std::vector<T> running_sums(const std::vector<T>& x, bool exclusive) {
  using Total = typename TotalOf<T>::type;
  std::vector<T> y;
  Total total = 0;
  T sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 8 == 0) {
      total = sum_of<Total>(total, static_cast<Total>(sum));
      sum = 0;
    }
    const T next = sum_of(sum, x[i]);
    y.push_back(sum_of(static_cast<T>(total), exclusive ? sum : next));
    sum = next;
  }
  return y;
}

template <class T>
void expect_running_sums(DType dtype, std::int64_t n, const ScanAttrs& attrs, Random& random) {
  const bool integers = dtype == DType::i32;
  const Array x = random_array(random, dtype, {3, n}, integers ? -2e9 : -2, integers ? 2e9 : 2), y = make_array(dtype, {3, n});
  run(kernels::cpu::cumsum, {x}, {y}, &attrs);
  const Array across = dense_copy(permuted(x, {1, 0})), y_across = make_array(dtype, {n, 3});
  ScanAttrs first = attrs;
  first.axis = 0;
  run(kernels::cpu::cumsum, {across}, {y_across}, &first);
  EXPECT_TRUE(same_bits(permuted(y_across, {1, 0}), y)) << n;
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<T> line;
    for (std::int64_t i = 0; i < n; ++i) line.push_back(x.at<T>(row * n + (attrs.reverse ? n - 1 - i : i)));
    const std::vector<T> sums = running_sums(line, attrs.exclusive);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y.at<T>(row * n + (attrs.reverse ? n - 1 - i : i)), sums[static_cast<std::size_t>(i)]) << n << ", " << i;
  }
}

TEST(Scan, RunningSumsOfEveryLength) {
  SCOPED_TRACE(::testing::Message() << "seed " << kScanSeed);
  Random random(kScanSeed);
  for (const std::int64_t n : {1, 7, 8, 63, 64, 65, 127, 200, 1024})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        ScanAttrs attrs;
        attrs.axis = 1;
        attrs.exclusive = exclusive;
        attrs.reverse = reverse;
        expect_running_sums<float>(DType::f32, n, attrs, random);
        expect_running_sums<double>(DType::f64, n, attrs, random);
        expect_running_sums<std::int32_t>(DType::i32, n, attrs, random);
      }
}

// Lines with NaN, infinities, zeros of both signs and equal neighbours, if the type has them.
Array scan_lines_of(Random& random, DType dtype, std::int64_t lines, std::int64_t n, double low, double high) {
  const Array x = random_array(random, dtype, {lines, n}, low, high);
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0, -0.0, 1, 1, inf, -inf};
  if (is_floating(dtype))
    for (std::int64_t i = 0; i < x.numel(); ++i)
      if (random() % 9 == 0) x.set(i, special[random() % 6]);
  if (is_floating(dtype) && lines > 1) x.set(n + n / 2, std::nan(""));
  return x;
}

// The same bits, but any NaN for a NaN.
bool same_numbers(const Array& a, const Array& b) {
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (!(std::isnan(a.get(i)) && std::isnan(b.get(i))) &&
        std::memcmp(a.address(i), b.address(i), dtype_size(a.view.dtype)) != 0)
      return false;
  return true;
}

// Runs a kernel along the rows, all of them and the first alone, and along the columns. All must give the same bits.
struct ScanResults {
  Array y, index;
};
template <class Attrs>
ScanResults scan_every_way(Kernel kernel, const Array& x, Attrs attrs, bool has_index) {
  const std::int64_t lines = x.view.sizes[0], n = x.view.sizes[1];
  const auto results = [&](const Sizes& sizes) {
    std::vector<Array> made = {make_array(x.view.dtype, sizes)};
    if (has_index) made.push_back(make_array(DType::i64, sizes));
    return made;
  };
  const std::vector<Array> all = results({lines, n}), alone = results({1, n}), across = results({n, lines});
  attrs.axis = 1;
  run(kernel, {x}, all, &attrs);
  Array first = x;
  first.view.sizes[0] = 1;
  run(kernel, {first}, alone, &attrs);
  attrs.axis = 0;
  run(kernel, {dense_copy(permuted(x, {1, 0}))}, across, &attrs);
  for (std::size_t k = 0; k < all.size(); ++k) {
    Array row = all[k];
    row.view.sizes[0] = 1;
    EXPECT_TRUE(same_numbers(row, alone[k])) << lines << ", " << n;
    EXPECT_TRUE(same_numbers(permuted(across[k], {1, 0}), all[k])) << lines << ", " << n;
  }
  return {all[0], has_index ? all[1] : all[0]};
}

template <class T>
void expect_running_products(DType dtype, const Array& x, const ScanAttrs& attrs) {
  const Array y = scan_every_way(kernels::cpu::cumprod, x, attrs, false).y;
  const std::int64_t n = x.view.sizes[1];
  for (std::int64_t line = 0; line < x.view.sizes[0]; ++line) {
    T product = 1;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = line * n + (attrs.reverse ? n - 1 - i : i);
      const T before = product;
      product = static_cast<T>(product * x.at<T>(at));
      const T expected = attrs.exclusive ? before : product;
      ASSERT_TRUE(y.at<T>(at) == expected || (expected != expected && y.at<T>(at) != y.at<T>(at))) << dtype_name(dtype) << at;
    }
  }
}

template <class T, class Beats>
void expect_running_extremes(Kernel kernel, const Array& x, const Beats& beats) {
  const ScanResults r = scan_every_way(kernel, x, AxisAttrs{}, true);
  const std::int64_t n = x.view.sizes[1];
  for (std::int64_t line = 0; line < x.view.sizes[0]; ++line) {
    std::int64_t best = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T now = x.at<T>(line * n + i), before = x.at<T>(line * n + best);
      if (now != now || beats(now, before)) best = i;
      ASSERT_EQ(r.index.at<std::int64_t>(line * n + i), best) << line << ", " << i;
      ASSERT_EQ(std::memcmp(r.y.address(line * n + i), x.address(line * n + best), sizeof(T)), 0);
    }
  }
}

// The oracle adds in long double, relative to the largest element so far.
template <class T>
void expect_running_exponentials(const Array& x, bool reverse, long double within) {
  LinearScanAttrs attrs;
  attrs.reverse = reverse;
  const Array y = scan_every_way(kernels::cpu::logcumsumexp, x, attrs, false).y;
  const std::int64_t n = x.view.sizes[1];
  for (std::int64_t line = 0; line < x.view.sizes[0]; ++line)
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = [&](std::int64_t k) { return line * n + (reverse ? n - 1 - k : k); };
      long double top = -std::numeric_limits<long double>::infinity(), total = 0;
      bool no_number = false;
      for (std::int64_t k = 0; k <= i; ++k) {
        top = std::max<long double>(top, x.at<T>(at(k)));
        no_number = no_number || std::isnan(x.at<T>(at(k)));
      }
      for (std::int64_t k = 0; k <= i; ++k)
        total += x.at<T>(at(k)) == top ? (std::isinf(top) && top < 0 ? 0 : 1) : std::exp(x.at<T>(at(k)) - top);
      const T got = y.at<T>(at(i));
      const long double exact = top + std::log(total);
      if (no_number)
        ASSERT_TRUE(std::isnan(got)) << line << ", " << i;
      else if (std::isinf(top))
        ASSERT_EQ(got, static_cast<T>(top)) << line << ", " << i;
      else
        ASSERT_NEAR(got, static_cast<double>(exact), static_cast<double>(within * (1 + std::fabs(exact)))) << line << ", " << i;
    }
}

TEST(Scan, LinesAloneTogetherAndSideBySide) {
  SCOPED_TRACE(::testing::Message() << "seed " << kScanSeed);
  Random random(kScanSeed);
  for (const std::int64_t lines : {1, 3, 8, 16, 35})
    for (const std::int64_t n : {1, 2, 64, 65, 150}) {
      const Array floats = scan_lines_of(random, DType::f32, lines, n, -2, 2);
      const Array doubles = scan_lines_of(random, DType::f64, lines, n, -2, 2);
      const Array integers = scan_lines_of(random, DType::i32, lines, n, 0, 9);
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) {
          ScanAttrs attrs;
          attrs.exclusive = exclusive;
          attrs.reverse = reverse;
          expect_running_products<float>(DType::f32, floats, attrs);
          expect_running_products<double>(DType::f64, doubles, attrs);
        }
      expect_running_extremes<float>(kernels::cpu::cummax, floats, [](float a, float b) { return a >= b; });
      expect_running_extremes<float>(kernels::cpu::cummin, floats, [](float a, float b) { return a <= b; });
      expect_running_extremes<double>(kernels::cpu::cummax, doubles, [](double a, double b) { return a >= b; });
      expect_running_extremes<std::int32_t>(kernels::cpu::cummin, integers, [](int a, int b) { return a <= b; });
      for (const bool reverse : {false, true}) {
        expect_running_exponentials<float>(floats, reverse, 4e-7L);
        expect_running_exponentials<double>(doubles, reverse, 1e-15L);
      }
    }
}

}  // namespace
}  // namespace tapedeck::testing
