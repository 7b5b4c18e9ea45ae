// Cases of SEEDS.md about the dynamic graph of an older system: recording, freeing and accumulating gradients. The names
// hold the numbers of the cases. Expected numbers are worked out by hand.
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <thread>

namespace tapedeck {
namespace {

constexpr double kTolerance = 1e-12;

Tensor leaf_f64(double value) {
  Tensor t = scalar(value, DType::f64);
  t.requires_grad(true);
  return t;
}

void write(Tensor& t, double value) { *static_cast<double*>(t.mutable_data()) = value; }

TEST(DynamicGraph, T21_OneRecordedOp) {
  const Tensor x = leaf_f64(19);
  const Tensor y = log(x);
  EXPECT_NEAR(y.item(), 2.9444389791664403, kTolerance);
  EXPECT_EQ(tape_stats().nodes, 1);
}

TEST(DynamicGraph, T22_ReciprocalIsADivisionOfANumber) {
  const Tensor x = leaf_f64(19);
  const Tensor y = 1 / x;
  EXPECT_NEAR(y.item(), 1.0 / 19, kTolerance);
  backward(y);
  EXPECT_NEAR(x.grad().item(), -1.0 / 361, kTolerance);
}

TEST(DynamicGraph, T25_ProductsAndSumsAndBackwardAgain) {
  const Tensor x = leaf_f64(19), y = leaf_f64(1.2);
  const Tensor f = x * log(x) + x * y;
  EXPECT_NEAR(f.item(), 78.74434060416236, 1e-11);
  backward(f, {.retain = true});
  EXPECT_NEAR(x.grad().item(), 5.14443897916644, kTolerance);  // the derivative is log x + 1 + y
  EXPECT_EQ(y.grad().item(), 19);
  backward(f);
  EXPECT_EQ(y.grad().item(), 38) << "it may run again, and adds";
}

TEST(DynamicGraph, T29_OneOperandOfADivision) {
  const Tensor a = leaf_f64(3);
  const Tensor y = a / 10;
  backward(y);
  EXPECT_NEAR(a.grad().item(), 0.1, kTolerance);
}

TEST(DynamicGraph, T30_ALongChainIsFreedAsItGoes) {
  const std::int64_t before = Allocator::host().stats().bytes_in_use;
  {
    Tensor x = leaf_f64(32);
    for (int i = 0; i < 7; ++i) x = x * 0.5;
    for (int i = 0; i < 3; ++i) x = square(x);
    EXPECT_EQ(x.item(), 0x1p-16);  // 0.25 to the power 8
    EXPECT_EQ(tape_stats().nodes, 10);
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, before);
}

TEST(DynamicGraph, T31_AGradientAddsToWhatIsThere) {
  Tensor x = leaf_f64(10);
  x.set_grad(scalar(10, DType::f64));
  {
    const Tensor f = x * log(x) + x;
    backward(f);
  }
  EXPECT_NEAR(x.grad().item(), 12 + std::log(10), kTolerance);
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(DynamicGraph, T32_AccumulatesOverRunsOnOtherValues) {
  Tensor x = leaf_f64(19);
  const Tensor y = scalar(1.2, DType::f64);
  backward(x * log(x) + x * y);
  EXPECT_NEAR(x.grad().item(), 5.14443897916644, kTolerance);
  {
    const NoGrad no_grad;
    write(x, 10);
  }
  backward(x * log(x) + x * y);
  EXPECT_NEAR(x.grad().item(), 9.647024072160486, kTolerance);
}

TEST(DynamicGraph, T33_FreeingEverythingLeavesNothing) {
  const Tensor z = leaf_f64(1);
  {
    const Tensor y = concat({reshape(z * 10, {1}), reshape(z * 2, {1})}, 0);
    const Tensor x = sum(y * y);
    EXPECT_EQ(x.item(), 104);
    EXPECT_GT(tape_stats().nodes, 0);
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

TEST(DynamicGraph, T34_OldResultsMayGoBeforeBackward) {
  const Tensor y = leaf_f64(1.3);
  std::vector<Tensor> f;
  for (int i = 1; i <= 10; ++i) f.push_back(y * i);
  for (int i = 0; i < 5; ++i) f[i] = Tensor();
  EXPECT_NEAR(f[9].item(), 13, kTolerance);
  double expected = 0;
  for (std::size_t i : {7, 8, 9}) {
    backward(f[i]);
    expected += static_cast<double>(i + 1);
    EXPECT_EQ(y.grad().item(), expected);
  }
  EXPECT_EQ(expected, 27);
  f.clear();
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(DynamicGraph, T40_GradientThroughATransposedView) {
  Tensor x = from_vector(std::vector<float>{3, 7}, {1, 2});
  x.requires_grad(true);
  {
    const Tensor column = transpose(x, {1, 0});
    EXPECT_EQ(column.shape(), (Shape{2, 1}));
    backward(sum(column * 10));
  }
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{10, 10}));
  EXPECT_EQ(tape_stats().nodes, 0);
}

// y = w x with x = 1..5 should become -5 x. The gradients of five samples are added up before each update.
TEST(DynamicGraph, T41_AccumulatesOverSamplesAndAppliesNowAndThen) {
  Tensor w = scalar(10);
  w.requires_grad(true);
  Sgd optimizer({w}, {.lr = 0.005});
  for (int i = 0; i < 1000; ++i) {
    const double x = i % 5 + 1;
    backward(square(w * x - -5 * x));
    if (i % 5 != 4) continue;
    optimizer.step();
    optimizer.zero_grad();
    ASSERT_EQ(tape_stats().nodes, 0);
    ASSERT_EQ(tape_stats().saved_bytes, 0);
  }
  EXPECT_NEAR(w.item(), -5, 1e-2);
}

// Two lanes on two threads; each thread has its own tape.
TEST(DynamicGraph, T42_IndependentLanesSideBySide) {
  std::optional<double> results[2], slopes[2];
  std::thread lanes[2];
  for (int i = 0; i < 2; ++i)
    lanes[i] = std::thread([&results, &slopes, i] {
      const Tensor x = leaf_f64(10 - i);
      const Tensor y = x * 0.4;
      backward(y);
      results[i] = y.item();
      slopes[i] = x.grad().item();
    });
  for (std::thread& lane : lanes) lane.join();
  EXPECT_NEAR(*results[0], 4, kTolerance);
  EXPECT_NEAR(*results[1], 3.6, kTolerance);
  EXPECT_EQ(*slopes[0], 0.4);
  EXPECT_EQ(*slopes[1], 0.4);
}

// The allocator reuses the block of a size class that was freed last.
TEST(DynamicGraph, T43_FreedMemoryIsReused) {
  Allocator allocator;
  void* probe = allocator.allocate(64);
  allocator.release(probe, 64);
  void* again = allocator.allocate(64);
  allocator.release(again, 64);
  if (again != probe) GTEST_SKIP() << "blocks are not kept in this build, so that a sanitizer sees each of them";
  void* a = allocator.allocate(512);
  void* b = allocator.allocate(512);
  allocator.release(a, 512);
  allocator.release(b, 512);
  EXPECT_EQ(allocator.allocate(480), b) << "a smaller request of the same class";
  EXPECT_EQ(allocator.allocate(512), a);
  EXPECT_EQ(allocator.stats().bytes_in_use, 992);
  allocator.release(a, 512);
  allocator.release(b, 480);
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
}

}  // namespace
}  // namespace tapedeck
