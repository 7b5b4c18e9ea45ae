// Cases of SEEDS.md about gradients as values, writes through views, and questions to the tape. The names hold the numbers
// of the cases. Expected numbers are worked out by hand.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck {
namespace {

using Doubles = std::vector<double>;
constexpr double kTolerance = 1e-12;

Tensor f64_tensor(const Doubles& values, const Shape& shape) { return from_bytes({DType::f64, shape}, values.data()); }
Tensor f64_tensor(const Doubles& values) { return f64_tensor(values, Shape{static_cast<std::int64_t>(values.size())}); }
Tensor leaf_f64(const Tensor& t) {
  Tensor x = t;
  x.requires_grad(true);
  return x;
}
Tensor leaf_f64(double value) { return leaf_f64(scalar(value, DType::f64)); }
Doubles doubles_of(const Tensor& t) { return t.to_vector<double>(); }

GradientOptions with_graph() {
  GradientOptions options;
  options.create_graph = true;
  return options;
}
GradientOptions with_heads(std::vector<Tensor> heads) {
  GradientOptions options;
  options.heads = std::move(heads);
  return options;
}
GradientOptions retained() {
  GradientOptions options;
  options.retain = true;
  return options;
}

void expect_near(const Tensor& t, const Doubles& expected) {
  ASSERT_TRUE(t.defined());
  const Doubles got = doubles_of(t);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], kTolerance * std::max(1.0, std::fabs(expected[i]))) << i;
}

// ---- views and writes through them ----

TEST(DynamicGraph, T23_AViewFollowsItsBase) {
  const Tensor base = f64_tensor({11, 10});
  const Tensor first = slice(base, 0, 0, 1), second = slice(base, 0, 1, 2);
  EXPECT_EQ(doubles_of(second), (Doubles{10}));
  copy_(base, f64_tensor({21, 20}));
  EXPECT_EQ(doubles_of(first), (Doubles{21}));
  EXPECT_EQ(doubles_of(second), (Doubles{20}));
  fill_(second, 7);
  EXPECT_EQ(doubles_of(base), (Doubles{21, 7}));
}

TEST(DynamicGraph, T24_AViewOfAViewFollowsBoth) {
  const Tensor base = f64_tensor({0, 1, 2, 13, 14, 15}, {2, 3});
  const Tensor row = slice(base, 0, 1, 2), inner = slice(row, 1, 1, 3);
  EXPECT_EQ(doubles_of(row), (Doubles{13, 14, 15}));
  EXPECT_EQ(doubles_of(inner), (Doubles{14, 15}));
  copy_(base, f64_tensor({0, 1, 2, 23, 24, 25}, {2, 3}));
  EXPECT_EQ(doubles_of(inner), (Doubles{24, 25}));
  mul_(inner, 10);
  EXPECT_EQ(doubles_of(row), (Doubles{23, 240, 250}));
  EXPECT_EQ(doubles_of(base), (Doubles{0, 1, 2, 23, 240, 250}));
}

// A net whose activations are stored in one buffer: b1 = w1 b0, b2 = w2 (b0 + b1), b3 = w3 (b0 + b1 + b2).
TEST(DynamicGraph, T26_ActivationsGrowInsideOneBuffer) {
  const Tensor x = leaf_f64(f64_tensor({0.5})), w1 = leaf_f64(f64_tensor({2})), w2 = leaf_f64(f64_tensor({-0.5})),
               w3 = leaf_f64(f64_tensor({4}));
  const Tensor buffer = zeros({4}, DType::f64);
  slice_assign_(buffer, {0}, {1}, x);
  const Tensor* weights[] = {&w1, &w2, &w3};
  for (int i = 0; i < 3; ++i) {
    const Tensor so_far = reshape(sum(slice(buffer, 0, 0, i + 1)), Shape{1});
    slice_assign_(buffer, {i + 1}, {i + 2}, *weights[i] * so_far);
  }
  EXPECT_EQ(doubles_of(buffer), (Doubles{0.5, 1, -0.75, 3}));
  backward(sum(slice(buffer, 0, 3, 4)));
  EXPECT_EQ(doubles_of(x.grad()), (Doubles{6}));
  EXPECT_EQ(doubles_of(w1.grad()), (Doubles{1}));
  EXPECT_EQ(doubles_of(w2.grad()), (Doubles{6}));
  EXPECT_EQ(doubles_of(w3.grad()), (Doubles{0.75}));
}

TEST(DynamicGraph, WritesThroughAViewCarryGradients) {
  const Tensor x = leaf_f64(f64_tensor({1, 2, 3})), s = leaf_f64(f64_tensor({10}));
  const Tensor y = x * 2;
  mul_(slice(y, 0, 1, 2), s);
  EXPECT_EQ(doubles_of(y), (Doubles{2, 40, 6}));
  backward(sum(y));
  EXPECT_EQ(doubles_of(x.grad()), (Doubles{2, 20, 2}));
  EXPECT_EQ(doubles_of(s.grad()), (Doubles{4}));
}

TEST(DynamicGraph, InPlaceArithmeticEqualsTheOrdinary) {
  const Tensor x = leaf_f64(f64_tensor({1, 2}));
  Tensor y = x + 0;
  add_(y, 3);
  sub_(y, 1);
  mul_(y, x);
  div_(y, 4);
  EXPECT_EQ(doubles_of(y), (Doubles{0.75, 2}));  // the formula is x (x + 2) / 4
  backward(sum(y));
  EXPECT_EQ(doubles_of(x.grad()), (Doubles{1, 1.5}));
  const Tensor z = x + 0;
  zero_(z);
  EXPECT_EQ(doubles_of(z), (Doubles{0, 0}));
}

// ---- nodes that stay on the tape ----

TEST(DynamicGraph, T33_KeepsJustWhatBackwardCanReach) {
  const Tensor z = leaf_f64(1);
  {
    Tensor y;
    {
      const Tensor a = reshape(z * 10, {1}), b = reshape(z * 2, {1});
      y = concat({a, b}, 0);
      const Tensor aside = exp(z);
      EXPECT_EQ(tape_stats().nodes, 6);
    }
    EXPECT_EQ(tape_stats().nodes, 5) << "the exponential was nobody's";
    EXPECT_EQ(doubles_of(y), (Doubles{10, 2}));
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().values, 0);
}

TEST(DynamicGraph, T35_WhatDependsOnWhat) {
  const Tensor a = leaf_f64(1), b = leaf_f64(2), c = leaf_f64(3);
  const Tensor e = a * b, g = e * c, f = a + c;
  EXPECT_TRUE(depends(g, a) && depends(g, b) && !depends(g, f));
  EXPECT_TRUE(depends(g, a) && depends(g, e) && depends(g, c) && !depends(g, f));
  EXPECT_TRUE(depends(f, a) && !depends(f, e) && depends(f, c));
  EXPECT_FALSE(depends(a, g)) << "not the other way";
}

TEST(DynamicGraph, T36_DetachingInTheMiddleOfAChain) {
  Tensor x = leaf_f64(2);
  {
    Tensor y = log(x);
    const Tensor z = y * 0.5;
    const std::int64_t before = tape_stats().nodes;
    EXPECT_EQ(before, 2);
    EXPECT_TRUE(depends(z, x));
    y.detach_();
    EXPECT_FALSE(y.requires_grad());
    EXPECT_FALSE(depends(z, x));
    EXPECT_EQ(tape_stats().nodes, 1) << "the logarithm goes at once";
    EXPECT_EQ(tape_stats().values, 3) << "y, 0.5 and z";
    EXPECT_NEAR(z.item(), std::log(2) / 2, kTolerance);
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().values, 0) << "the input x is still held, but no node reads it";
}

// What each handle keeps, one let go after the other. The logarithm was the only reader of x, so x is not on the tape once it
// is gone, and letting x go changes nothing.
TEST(DynamicGraph, T36_FreeingTheInputOfADetachedChain) {
  const auto expect_tape = [](std::int64_t nodes, std::int64_t values, const char* held) {
    EXPECT_EQ(tape_stats().nodes, nodes) << held;
    EXPECT_EQ(tape_stats().values, values) << held;
  };
  for (const bool detached : {true, false}) {
    Tensor x = leaf_f64(2);
    Tensor y = log(x);
    Tensor z = y * 0.5;
    expect_tape(2, 4, "x, y, 0.5 and z");
    if (detached) {
      y.detach_();
      expect_tape(1, 3, "y, 0.5 and z");
    }
    x = Tensor();
    expect_tape(detached ? 1 : 2, detached ? 3 : 4, "a handle less; backward reads x unless y is detached");
    y = Tensor();
    expect_tape(detached ? 1 : 2, detached ? 3 : 4, "the product reads y");
    z = Tensor();
    expect_tape(0, 0, "free all");
  }
}

TEST(DynamicGraph, T38_TheOtherFactorOfADetachedOneKeepsItsGradient) {
  const Tensor x = leaf_f64(2), a = leaf_f64(3);
  {
    Tensor y = log(x);
    const Tensor z = a * y;
    y.detach_();
    EXPECT_FALSE(depends(z, x));
    EXPECT_TRUE(depends(z, a));
    EXPECT_EQ(tape_stats().nodes, 1) << "the logarithm goes at once";
    EXPECT_EQ(tape_stats().values, 3) << "a, y and z";
    backward(z);
  }
  EXPECT_NEAR(a.grad().item(), std::log(2), kTolerance);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(DynamicGraph, T39_DetachingInALongerChain) {
  Tensor x = leaf_f64(2);
  Tensor f = log(x);
  Tensor y = f * 0.5;
  Tensor z = exp(y);
  y.detach_();
  EXPECT_FALSE(depends(z, x));
  EXPECT_TRUE(depends(f, x)) << "what came before it is as it was";
  EXPECT_NEAR(z.item(), std::sqrt(2), kTolerance);
  EXPECT_EQ(tape_stats().nodes, 2);
  EXPECT_EQ(tape_stats().values, 4) << "x, f, y and z";
  f = Tensor();
  EXPECT_EQ(tape_stats().nodes, 1);
  EXPECT_EQ(tape_stats().values, 2) << "y and z";
  z = Tensor();
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().values, 1) << "y";
  y = Tensor();
  EXPECT_EQ(tape_stats().values, 0);
}

// ---- gradients as values ----

TEST(DynamicGraph, T25_GradientsOfIntermediatesToo) {
  const Tensor x = leaf_f64(19), y = leaf_f64(1.2);
  const Tensor z = x * y, f = x * log(x) + z;
  const std::vector<Tensor> g = gradients({f}, {x, y, z}, retained());
  EXPECT_NEAR(g[0].item(), 5.14443897916644, kTolerance);
  EXPECT_EQ(g[1].item(), 19);
  EXPECT_EQ(g[2].item(), 1);
  EXPECT_EQ(gradients({f}, {y})[0].item(), 19) << "and again, for another";
  EXPECT_FALSE(x.grad().defined()) << "gradients() leaves the leaves alone";
}

TEST(Autodiff, T64_SecondGradientOfCosine) {
  const Tensor x = leaf_f64(0.7);
  const Tensor g = gradients({cos(x)}, {x}, with_graph())[0];
  EXPECT_NEAR(g.item(), -std::sin(0.7), kTolerance);
  EXPECT_NEAR(gradients({g}, {x})[0].item(), -std::cos(0.7), kTolerance);
}

TEST(Autodiff, HigherGradientsOfAPower) {
  const Tensor x = leaf_f64(3);
  Tensor y = square(x) * square(x);
  for (double expected : {108.0, 108.0, 72.0, 24.0}) {  // the derivatives 4 x^3, 12 x^2, 24 x and 24
    y = gradients({y}, {x}, with_graph())[0];
    EXPECT_NEAR(y.item(), expected, 1e-10);
  }
  EXPECT_FALSE(y.requires_grad() && gradients({y}, {x})[0].defined() && gradients({y}, {x})[0].item() != 0);
}

TEST(Autodiff, T65_AnIntermediateAndALeafInOnePass) {
  const Tensor x = leaf_f64(3);
  const Tensor y = square(x), z = square(y);
  const std::vector<Tensor> g = gradients({z}, {x, y});
  EXPECT_EQ(g[0].item(), 4 * 27);
  EXPECT_EQ(g[1].item(), 2 * 9);
}

TEST(Autodiff, T72_TheGradientOfAnIntermediateIsOne) {
  const Tensor x = leaf_f64(5), w = leaf_f64(2);
  const Tensor y = x * w, z = y + 1;
  EXPECT_EQ(gradients({z}, {y})[0].item(), 1);
}

TEST(Autodiff, T73_AnUnreachedTensorHasNone) {
  const Tensor x = leaf_f64(1), other = leaf_f64(2);
  const Tensor y = x * 3;
  const std::vector<Tensor> g = gradients({y}, {x, other, x});
  EXPECT_EQ(g[0].item(), 3);
  EXPECT_FALSE(g[1].defined());
  EXPECT_EQ(g[2].item(), 3) << "asking twice gives it twice";
  GradientOptions strict;
  strict.allow_unused = false;
  const Tensor again = x * 3;
  EXPECT_THROW(gradients({again}, {other}, strict), GradientError);
}

// The gradient of <J^T u, v> for u is J v, so two backward runs give a forward-mode derivative.
TEST(Autodiff, T74_ForwardModeFromTwoBackwardRuns) {
  const Tensor w = f64_tensor({1, -2, 0.5, 3, 0.25, -1}, {2, 3}), v = f64_tensor({1, 2, -1}, {3, 1});
  const Tensor x = leaf_f64(f64_tensor({0.1, 0.2, 0.3}, {3, 1}));
  const Tensor u = leaf_f64(f64_tensor({1, 1}, {2, 1}));
  const Tensor y = tanh(matmul(w, x));
  GradientOptions options = with_graph();
  options.heads = {u};
  const Tensor g = gradients({y}, {x}, options)[0];
  const Tensor jv = gradients({sum(g * v)}, {u})[0];
  const double y0 = std::tanh(0.1 - 0.4 + 0.15), y1 = std::tanh(0.3 + 0.05 - 0.3);
  expect_near(jv, {(1 - y0 * y0) * (1 - 4 - 0.5), (1 - y1 * y1) * (3 + 0.5 + 1)});
}

TEST(Autodiff, T112_SeveralTargetsWithHeadsOfTheirOwn) {
  const Tensor x = leaf_f64(f64_tensor(Doubles(15, 1), {3, 5}));
  const Tensor rows[3] = {slice(x, 0, 0, 1), slice(x, 0, 1, 2), slice(x, 0, 2, 3)};
  const Tensor up = f64_tensor({1, 2, 3, 4, 5}, {1, 5}), down = f64_tensor({5, 4, 3, 2, 1}, {1, 5});
  const Tensor g = gradients({rows[0], rows[1], rows[2]}, {x}, with_heads({Tensor(), up, down}))[0];
  EXPECT_EQ(doubles_of(g), (Doubles{1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1}));
}

TEST(Autodiff, W6_TheSameTargetTwiceAddsItsHeads) {
  const Tensor x = leaf_f64(f64_tensor({1, 2}));
  const Tensor y = x * 3;
  expect_near(gradients({y, y}, {x}, with_heads({f64_tensor({1, 10}), f64_tensor({100, 1000})}))[0], {303, 3030});
}

TEST(Autodiff, T115_TheGradientOfAGradientRunsBackward) {
  const Tensor x = leaf_f64(1);
  const Tensor g = gradients({exp(x) + x}, {x}, with_graph())[0];
  EXPECT_NEAR(g.item(), std::exp(1) + 1, kTolerance);
  backward(g);
  EXPECT_NEAR(x.grad().item(), std::exp(1), kTolerance);
}

// ---- custom gradients ----

// The forward function multiplies by 10, its custom gradient by 20. One step of descent at rate 1 subtracts 20 from the
// parameter, also if the function is nested.
TEST(Autodiff, T76_AGradientThatIsNotTheDerivative) {
  const auto forward = [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0] * 10}; };
  const auto backward_of = [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
    return std::vector<Tensor>{dys[0] * 20};
  };
  const Tensor a = leaf_f64(3);
  const Tensor y = custom_gradient({a}, forward, backward_of)[0];
  EXPECT_EQ(y.item(), 30);
  const Tensor g = gradients({y}, {a}, with_graph())[0];
  EXPECT_EQ(g.item(), 20);
  backward(y);
  {
    const NoGrad no_grad;
    sub_(a, a.grad());
  }
  EXPECT_EQ(a.item(), 3 - 20);
}

TEST(Autodiff, T77_AMissingGradientIsNone) {
  const auto forward = [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0] + xs[1]}; };
  const auto first_only = [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
    return std::vector<Tensor>{dys[0] * 3, Tensor()};
  };
  const Tensor a = leaf_f64(1), b = leaf_f64(2);
  const Tensor y = custom_gradient({a, b}, forward, first_only)[0];
  backward(y * 2);
  EXPECT_EQ(a.grad().item(), 6);
  EXPECT_FALSE(b.grad().defined() && b.grad().item() != 0);
  EXPECT_THROW(custom_gradient({a, Tensor()}, forward, first_only), TypeError);
}

// ---- gradient hooks ----

TEST(Autodiff, HooksSeeACompleteGradientOnceAndMayReplaceIt) {
  Tensor x = leaf_f64(2);
  int calls = 0;
  double seen = 0;
  x.on_grad([&](const Tensor& g) {
    ++calls;
    seen = g.item();
    return g * 10;
  });
  backward(x * 3 + x * 4);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(x.grad().item(), 70);
}

TEST(Autodiff, AHookOnAnIntermediateReachesWhatIsBehindIt) {
  const Tensor x = leaf_f64(2);
  Tensor y = x * 3;
  y.on_grad([](const Tensor&) { return scalar(100, DType::f64); });
  y.on_grad([](const Tensor& g) {
    EXPECT_EQ(g.item(), 100) << "hooks run in the order they were added";
    return Tensor();  // keeps the gradient unchanged
  });
  backward(y * 5);
  EXPECT_EQ(x.grad().item(), 300);
}

}  // namespace
}  // namespace tapedeck
