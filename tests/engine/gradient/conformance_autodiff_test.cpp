// Cases of SEEDS.md about the automatic differentiation of two older systems. The names hold the numbers of the cases.
// Expected numbers are worked out by hand.
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;

Tensor float_leaf(std::initializer_list<float> values) {
  Tensor t = tensor(values);
  t.requires_grad(true);
  return t;
}

Tensor float_leaf(const Floats& values, const Shape& shape) {
  Tensor t = from_vector(values, shape);
  t.requires_grad(true);
  return t;
}

Floats float_grad_of(const Tensor& t) { return t.grad().to_vector<float>(); }

// ---- shared weights ----

// (2w + b - t)^2 for two targets t: one weight and one bias, each used twice.
TEST(Autodiff, T46_AWeightUsedTwice) {
  const float w = 0.75f, b = 0.5f, inputs = 2;
  const Tensor weight = float_leaf({w}), bias = float_leaf({b}), a0 = float_leaf({inputs}), a1 = float_leaf({inputs}),
               t0 = float_leaf({2}), t1 = float_leaf({3});
  const auto loss = [&](const Tensor& a, const Tensor& t) { return sum(square(a * weight + bias - t)); };
  backward(loss(a0, t0) + loss(a1, t1));
  const float e0 = 2 * w + b - 2, e1 = 2 * w + b - 3;  // the errors for both targets: 0 and -1
  EXPECT_EQ(float_grad_of(a0), (Floats{2 * w * e0}));
  EXPECT_EQ(float_grad_of(a1), (Floats{2 * w * e1}));
  EXPECT_EQ(float_grad_of(t0), (Floats{-2 * e0}));
  EXPECT_EQ(float_grad_of(t1), (Floats{-2 * e1}));
  EXPECT_EQ(float_grad_of(weight), (Floats{2 * inputs * (e0 + e1)}));
  EXPECT_EQ(float_grad_of(bias), (Floats{2 * (e0 + e1)}));
}

// ---- the gradients of an op, and the tensors it keeps ----

TEST(Autodiff, T60_ProductGivesEachFactorTheOther) {
  const Floats dz{0.1f, -3, 7};
  for (int mask = 1; mask < 4; ++mask) {
    Tensor a = tensor({0.3f, 1e20f, -7}), b = tensor({1.7f, 2e-20f, 5});
    a.requires_grad(mask & 1);
    b.requires_grad(mask & 2);
    backward(a * b, {.head = from_vector(dz, {3})});
    EXPECT_EQ(a.grad().defined() + b.grad().defined(), (mask & 1) + (mask >> 1)) << "as many gradients as asked for";
    if (mask & 1) {
      EXPECT_EQ(float_grad_of(a), (Floats{dz[0] * 1.7f, dz[1] * 2e-20f, dz[2] * 5}));
    }
    if (mask & 2) {
      EXPECT_EQ(float_grad_of(b), (Floats{dz[0] * 0.3f, dz[1] * 1e20f, dz[2] * -7}));
    }
  }
}

TEST(Autodiff, T61_IdentityPassesTheBitsOfTheGradient) {
  const Tensor head = tensor({-0.0f, INFINITY, 1e-42f, 0.1f});
  for (const auto& identity : {+[](const Tensor& x) { return copy(x); }, +[](const Tensor& x) { return reshape(x, Shape{4}); },
                               +[](const Tensor& x) { return slice(x, 0, 0, 4); }}) {
    const Tensor x = float_leaf({1, 2, 3, 4});
    backward(identity(x), {.head = head});
    EXPECT_TRUE(bit_equal(x.grad(), head));
  }
}

TEST(Autodiff, T66_RoundsLeaveNoMoreBehindThanOne) {
  Tensor x = float_leaf({1, 2, 3});
  MemoryStats after_one;
  for (int round = 0; round < 3; ++round) {
    const Tensor y = exp(x * 2), loss = sum(y * y);
    backward(loss);
    x.set_grad(Tensor());
    if (round == 0) after_one = Allocator::host().stats();
    EXPECT_EQ(Allocator::host().stats().bytes_in_use, after_one.bytes_in_use) << round;
    EXPECT_EQ(Allocator::host().stats().blocks_in_use, after_one.blocks_in_use) << round;
  }
}

TEST(Autodiff, T67_SumsKeepNoOperands) {
  const Tensor x1 = float_leaf(Floats(1000, 1), {1000}), x2 = float_leaf({3});
  const std::int64_t before = Allocator::host().stats().bytes_in_use;
  const Tensor z = x1 * 2 + x2 * 2;
  EXPECT_LE(Allocator::host().stats().bytes_in_use - before, z.bytes() + 64) << "both summands are gone already";
  Floats dz(1000);
  for (std::size_t i = 0; i < dz.size(); ++i) dz[i] = static_cast<float>(i % 7);
  backward(z, {.head = from_vector(dz, {1000})});
  double total = 0;
  for (float v : dz) total += v;
  EXPECT_EQ(float_grad_of(x2)[0], 2 * total);
  EXPECT_EQ(float_grad_of(x1)[6], 12);
}

TEST(Autodiff, T68_ReluKeepsItsResultAtMost) {
  const Tensor x = float_leaf({1, -1});
  const Tensor y = relu(2 * x);
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 0}));
  EXPECT_LE(tape_stats().saved_bytes, y.bytes() + 4) << "not its operand; the 4 bytes are the factor";
  backward(sum(y));
  EXPECT_EQ(float_grad_of(x), (Floats{2, 0}));
}

TEST(Autodiff, T69_AWindowKeepsNothing) {
  const Tensor x = float_leaf({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  const Tensor y = slice(x, Ints{1, 0}, Ints{-1, 2});
  EXPECT_EQ(y.to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  backward(sum(y));
  EXPECT_EQ(float_grad_of(x), (Floats{0, 0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(Autodiff, T70_MeansAndBroadcasts) {
  const Tensor x = float_leaf({1, 2, 3}), one = float_leaf({5});
  backward(mean(x * 1));
  EXPECT_EQ(float_grad_of(x), (Floats(3, 1.0f / 3)));
  backward(sum(broadcast_to(one, {10})));
  EXPECT_EQ(float_grad_of(one), (Floats{10}));
}

// ---- gradients of leaves ----

TEST(Autodiff, T71_AWeightAndABias) {
  const Tensor x = from_vector(Floats{1, 3, 5}, {1, 3});
  const Tensor w = float_leaf({2, 4, 6}, {3, 1}), b = float_leaf({-1});
  const Tensor y = matmul(x, w) + b;
  EXPECT_EQ(y.to_vector<float>(), (Floats{2 + 12 + 30 - 1}));
  backward(y);
  EXPECT_EQ(w.grad().shape(), (Shape{3, 1}));
  EXPECT_EQ(float_grad_of(w), (Floats{1, 3, 5}));
  EXPECT_EQ(float_grad_of(b), (Floats{1}));
}

TEST(Autodiff, T72_AHeadGradientScalesAll) {
  const Tensor x = from_vector(Floats{1, 3, 5}, {1, 3});
  const Tensor w = float_leaf({2, 4, 6}, {3, 1}), b = float_leaf({-1});
  backward(matmul(x, w) + b, {.head = from_vector(Floats{2.5f}, {1, 1})});
  EXPECT_EQ(float_grad_of(w), (Floats{2.5f, 7.5f, 12.5f}));
  EXPECT_EQ(float_grad_of(b), (Floats{2.5f}));
}

TEST(Autodiff, T73_UnreachedLeavesHaveNoGradientAndMarkingTwiceIsOnce) {
  Tensor x = float_leaf({1, 2}), other = float_leaf({3, 4});
  x.requires_grad(true);
  backward(sum(x * 3));
  EXPECT_EQ(float_grad_of(x), (Floats{3, 3}));
  EXPECT_FALSE(other.grad().defined());
}

TEST(Autodiff, T75_IntegersHaveNoGradient) {
  Tensor i = from_vector(std::vector<std::int32_t>{1, 2, 3}, {3});
  EXPECT_MENTIONS(message_of<TypeError>([&] { i.requires_grad(true); }), "i32[3]");
  EXPECT_FALSE(i.requires_grad());
}

// The loss is scaled, so the gradients carry the scale. Both parameters get the same gradient; dividing one gradient by the
// scale must not change the other.
TEST(Autodiff, T83_GradientsDoNotShareBytes) {
  const Tensor a = float_leaf({1, 2}), b = float_leaf({3, 4});
  constexpr float kScale = 1024;
  backward(sum(a * 2 + b * 2) * kScale);
  EXPECT_EQ(float_grad_of(a), (Floats{2 * kScale, 2 * kScale}));
  const Tensor c = float_leaf({1, 2}), d = float_leaf({3, 4}), head = tensor({2 * kScale, 2 * kScale});
  backward(c + d, {.head = head});
  const NoGrad no_grad;
  for (const Tensor& p : {a, b, c, d}) {
    apply_in_place(ops::mul, std::vector<Tensor>{p.grad(), scalar(1 / kScale)}, nullptr, {});
    EXPECT_EQ(float_grad_of(p), (Floats{2, 2}));
  }
  EXPECT_EQ(head.to_vector<float>(), (Floats{2 * kScale, 2 * kScale})) << "nor with the head";
}

// ---- sums of many, several results ----

TEST(Autodiff, T101_SumsOfOneToNineOperands) {
  for (int n = 1; n <= 9; ++n) {
    std::vector<Tensor> xs;
    for (int i = 0; i < n; ++i) xs.push_back(float_leaf({static_cast<float>(i), static_cast<float>(1 << i)}));
    Tensor total = xs[0];
    for (int i = 1; i < n; ++i) total = total + xs[i];
    EXPECT_EQ(total.to_vector<float>(), (Floats{static_cast<float>(n * (n - 1) / 2), static_cast<float>((1 << n) - 1)}));
    backward(sum(total * tensor({3, 5})));
    for (const Tensor& x : xs) EXPECT_EQ(float_grad_of(x), (Floats{3, 5})) << n;
  }
}

// One value with n readers.
TEST(Autodiff, T101_OneToNineReadersOfOneValue) {
  for (int n = 1; n <= 9; ++n) {
    const Tensor x = float_leaf({2});
    const Tensor h = x * 1;
    Tensor total;
    for (int i = 0; i < n; ++i) total = total.defined() ? total + h * (i + 1) : h * (i + 1);
    backward(sum(total));
    EXPECT_EQ(float_grad_of(x), (Floats{static_cast<float>(n * (n + 1) / 2)})) << n;
  }
}

// A value is read through overlapping windows and as a whole.
TEST(Autodiff, W1_WindowsAndThenTheWhole) {
  const Tensor x = float_leaf({1, 2, 3, 4});
  const Tensor y = x * 1, a = slice(y, 0, 0, 2), b = slice(y, 0, 1, 4);
  backward(sum(a * a) + sum(b * 10) + sum(y * y * 100));
  EXPECT_EQ(float_grad_of(x), (Floats{2 + 200, 4 + 10 + 400, 10 + 600, 10 + 800}));
}

TEST(Autodiff, W8_MoreOperandsThanBitsInAWord) {
  std::vector<Tensor> parts;
  Floats heads;
  for (int i = 0; i < 600; ++i) {
    parts.push_back(float_leaf({static_cast<float>(i)}));
    heads.push_back(static_cast<float>(3 * i + 1));
  }
  const Tensor whole = concat(parts, 0);
  EXPECT_EQ(whole.size(0), 600);
  backward(whole * 1, {.head = from_vector(heads, {600})});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ASSERT_TRUE(parts[i].grad().defined()) << i;
    EXPECT_EQ(float_grad_of(parts[i]), (Floats{heads[i]}));
  }
}

TEST(Autodiff, T111_OneOfSeveralResultsAndAnIndexBesideIt) {
  const Tensor x = float_leaf({4, 1, 3, 2, 6, 5}, {2, 3});
  const Tensor index = argmax(x, 1), left = slice(x, 1, 0, 1), right = slice(x, 1, 1, 3);
  EXPECT_EQ(index.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1}));
  EXPECT_FALSE(index.requires_grad());
  backward(sum(right * 2));
  EXPECT_EQ(float_grad_of(x), (Floats{0, 2, 2, 0, 2, 2}));
  EXPECT_EQ(left.to_vector<float>(), (Floats{4, 2}));
}

TEST(Autodiff, T112_EachPieceOfASplitWithItsOwnHead) {
  const Tensor x = float_leaf(Floats(15, 1), {3, 5});
  const Tensor rows[3] = {slice(x, 0, 0, 1), slice(x, 0, 1, 2), slice(x, 0, 2, 3)};
  backward(rows[0], {.head = ones({1, 5})});
  backward(rows[1], {.head = from_vector(Floats{1, 2, 3, 4, 5}, {1, 5})});
  backward(rows[2], {.head = from_vector(Floats{5, 4, 3, 2, 1}, {1, 5})});
  EXPECT_EQ(float_grad_of(x), (Floats{1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1}));
}

TEST(Autodiff, T113_ADetachedFactorGetsNoGradient) {
  const Tensor x = float_leaf({2}), y = float_leaf({3});
  backward(sum(x + y));
  EXPECT_EQ(float_grad_of(x), (Floats{1}));
  EXPECT_EQ(float_grad_of(y), (Floats{1}));
  Tensor a = float_leaf({2}), b = float_leaf({3});
  backward(sum(a.detach() + b));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(float_grad_of(b), (Floats{1}));
}

TEST(Autodiff, T114_RetainAllowsAnotherBackward) {
  const Tensor x = float_leaf({3});
  const Tensor y = sum(x * x);
  backward(y, {.retain = true});
  backward(y, {.retain = true});
  EXPECT_EQ(float_grad_of(x), (Floats{12}));
  backward(y);
  EXPECT_EQ(float_grad_of(x), (Floats{18}));
  EXPECT_THROW(backward(y), GradientError);
  EXPECT_EQ(float_grad_of(x), (Floats{18}));
}

}  // namespace
}  // namespace tapedeck
