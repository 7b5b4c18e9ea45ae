// Tests running sums along the last axis, forwards and backwards, and along the first. The oracle adds up blocks of eight
// elements one after the other, so every way through the kernel must give its bits.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs/scan.h>

#include <gtest/gtest.h>

namespace tapedeck::kernels::cpu {
void cumsum(const KernelCall& call);
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

}  // namespace
}  // namespace tapedeck::testing
