// Tests matmul against sums in double precision. Row-major and column-major operands, gaps between rows and any number of
// threads must give the same bits.
#include <tapedeck/tests/kernels/matrices.h>
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr unsigned kMatmulSeed = 77;

void expect_product(const Array& a, const Array& b, const Array& c, double tolerance) {
  const std::int64_t m = c.view.sizes[c.view.rank - 2], n = c.view.sizes[c.view.rank - 1], k = a.view.sizes[a.view.rank - 1];
  const std::vector<double> left = values(a), right = values(b);
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    const std::int64_t batch = i / (m * n), row = i / n % m, col = i % n;
    double total = 0, size = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double term = left[(batch * m + row) * k + p] * right[(batch * k + p) * n + col];
      total += term, size += std::fabs(term);
    }
    ASSERT_NEAR(c.get(i), total, size * tolerance) << m << "x" << n << "x" << k << " element " << i;
  }
}

Array product(const Array& a, const Array& b, const Sizes& sizes) {
  const Array c = make_array(a.view.dtype, sizes);
  EXPECT_EQ(run(cpu::matmul, {a, b}, {c}).fault, nullptr);
  return c;
}

void check_matmul(Random& random, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Array a = random_array(random, dtype, {m, k}, -3, 3), b = random_array(random, dtype, {k, n}, -3, 3);
  const Array c = product(a, b, {m, n});
  expect_product(a, b, c, dtype == DType::f32 ? 1e-6 : 1e-14);
  for (const Array& left : {a, column_major(a), gapped(a, k + 3), gapped(a, 1024)})
    for (const Array& right : {b, column_major(b), gapped(b, n + 1), gapped(b, 1024)})
      ASSERT_TRUE(same_bits(c, product(left, right, {m, n}))) << m << "x" << n << "x" << k;
}

TEST(Matmul, AnyLayoutGivesTheSameBits) {
  SCOPED_TRACE(::testing::Message() << "seed " << kMatmulSeed);
  Random random(kMatmulSeed);
  for (const DType dtype : {DType::f32, DType::f64}) {
    check_matmul(random, dtype, 1, 10, 64);
    check_matmul(random, dtype, 64, 10, 784);
    check_matmul(random, dtype, 17, 33, 100);
    check_matmul(random, dtype, 1, 300, 300);
    check_matmul(random, dtype, 300, 1, 300);
    check_matmul(random, dtype, 5, 7, 1000);
    check_matmul(random, dtype, 130, 260, 257);
    check_matmul(random, dtype, 16, 16, 16);
    check_matmul(random, dtype, 3, 3, 1);
  }
  check_matmul(random, DType::i32, 20, 30, 40);
  check_matmul(random, DType::i64, 20, 30, 40);
  for (int round = 0; round < 12; ++round)
    check_matmul(random, DType::f32, 1 + random() % 150, 1 + random() % 300, 1 + random() % 300);
}

// So large that one turned block of the right factor serves several tiles below each other.
TEST(Matmul, TurnedBlocksOfManyTilesGiveTheBitsOfPlainOnes) {
  Random random(kMatmulSeed);
  constexpr std::int64_t kRows = 600, kCols = 3400, kInner = 20;
  const Array a = random_array(random, DType::f32, {kRows, kInner}, -3, 3),
              b = random_array(random, DType::f32, {kInner, kCols}, -3, 3);
  const Array c = product(a, b, {kRows, kCols});
  expect_product(a, b, c, 1e-6);
  EXPECT_TRUE(same_bits(product(a, column_major(b), {kRows, kCols}), c));
}

TEST(Matmul, BatchesThatBroadcast) {
  Random random(kMatmulSeed);
  const Array a = broadcast(random_array(random, DType::f32, {3, 1, 5, 6}), {3, 4, 5, 6});
  const Array b = broadcast(random_array(random, DType::f32, {4, 6, 7}), {3, 4, 6, 7});
  expect_product(a, b, product(a, b, {3, 4, 5, 7}), 1e-6);
}

TEST(Matmul, EmptyMatrices) {
  EXPECT_EQ(product(make_array(DType::f32, {0, 3}), make_array(DType::f32, {3, 4}), {0, 4}).numel(), 0);
  const Array c = array_of(DType::f32, {2, 2}, {1, 2, 3, 4});
  run(cpu::matmul, {make_array(DType::f32, {2, 0}), make_array(DType::f32, {0, 2})}, {c});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(c.get(i), 0);
}

TEST(Matmul, ThreadsDoNotChangeTheBits) {
  Random random(kMatmulSeed);
  const Array a = random_array(random, DType::f32, {400, 500}), b = random_array(random, DType::f32, {500, 600});
  const Array one = make_array(DType::f32, {400, 600}), two = make_array(DType::f32, {400, 600});
  with_threads(1, [&] { run(cpu::matmul, {a, b}, {one}); });
  with_threads(2, [&] { run(cpu::matmul, {a, b}, {two}); });
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Matmul, NanAndInfinityComeThrough) {
  for (const std::int64_t n : {2, 40}) {
    const Array a = make_array(DType::f32, {n, n}), b = make_array(DType::f32, {n, n});
    a.set(0, INFINITY);
    b.set(0, 0);
    EXPECT_TRUE(std::isnan(product(a, b, {n, n}).get(0)));
  }
}

}  // namespace
}  // namespace tapedeck::testing
