// Tests gradients that a captured step computes, reads or passes on. The oracle is the same code run eagerly.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/step/footguns.h>

namespace tapedeck {
namespace {

using testing::message_of;

Tensor a_parameter() {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  return w;
}

// A step that computes the gradient of sum(x * w * w) and stores it in w, which outlives the step.
CapturedStep squares_of(Tensor& w) {
  return capture([&w](const Tensors& in) -> Tensors {
    w.set_grad(Tensor());
    const Tensor loss = sum(in[0] * w * w);
    backward(loss);
    return {loss};
  });
}

TEST(Footguns, LeafGradientsAreThoseOfTheReplay) {
  Tensor w = a_parameter();
  CapturedStep step = squares_of(w);
  std::vector<Tensor> kept;
  for (float v : {1.f, 2.f, 3.f, 4.f, 5.f}) {
    step({tensor({v, v})});
    EXPECT_EQ(values(w.grad()), (Floats{2 * v, 4 * v})) << v;
    kept.push_back(w.grad());
  }
  EXPECT_EQ(values(kept[2]), (Floats{6, 12})) << "the next replay leaves it alone";
  EXPECT_EQ(step.replays(), 3);
  EXPECT_MENTIONS(step.explain(), "gradients left:\n  grad.w: f32[2]");
}

// Gradients that are never cleared add up, as in eager code. A call that finds a gradient and a call that finds none are two
// programs.
TEST(Footguns, GradientsThatAccumulateOverCalls) {
  Tensor w = tensor({1, 2}), e = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  e.requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    backward(sum(in[0] * w));
    return {};
  });
  for (int i = 1; i <= 9; ++i) {
    if (i == 6) {
      w.set_grad(Tensor());
      e.set_grad(Tensor());
    }
    const Tensor x = tensor({static_cast<float>(i), 1});
    step({x});
    backward(sum(x * e));
    EXPECT_EQ(values(w.grad()), values(e.grad())) << i;
  }
  EXPECT_GE(step.replays(), 4);
  EXPECT_MENTIONS(step.explain(), "'w' has a gradient already, it had none");
  EXPECT_MENTIONS(step.explain(), "grad_in.w: f32[2]  the gradient there was before the step");
}

TEST(Footguns, ClearingInsideAndOutside) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  Sgd optimizer({w}, {.lr = 0.5});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    backward(sum(in[0] * w));
    optimizer.step();
    optimizer.zero_grad();
    return {};
  });
  for (int i = 0; i < 4; ++i) {
    step({tensor({1, 1})});
    EXPECT_FALSE(w.grad().defined());
  }
  EXPECT_EQ(values(w), (Floats{-1, 0}));
  // The step adds once to a gradient that the caller has set.
  w.set_grad(tensor({10, 10}));
  step({tensor({1, 1})});
  EXPECT_EQ(values(w), (Floats{-6.5, -5.5}));
}

// A captured optimizer step reads gradients that eager code has computed. They must be inputs and not constants.
TEST(Footguns, AnOptimizerStepOnGradientsMadeOutside) {
  Tensor w = tensor({0, 0});
  w.name("w").role(Role::parameter).requires_grad(true);
  Sgd optimizer({w}, {.lr = 1});
  CapturedStep step = capture([&](const Tensors&) -> Tensors {
    optimizer.step();
    return {};
  });
  Floats expected{0, 0};
  for (int i = 0; i < 5; ++i) {
    w.set_grad(tensor({static_cast<float>(i), 1}));
    step({});
    expected[0] -= static_cast<float>(i);
    expected[1] -= 1;
    EXPECT_EQ(values(w), expected) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, GradientOfAnInputLeaf) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    backward(sum(in[0] * in[0]));
    return {};
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    Tensor x = tensor({v});
    x.requires_grad(true);
    step({x});
    ASSERT_TRUE(x.grad().defined()) << v;
    EXPECT_EQ(values(x.grad()), Floats{2 * v});
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, BackwardInsideThatWouldLeaveTheStep) {
  Tensor w = tensor({2});
  w.requires_grad(true);
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    backward(sum(in[0] * 3));
    return {};
  });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({w * 2}); }),
                  "backward inside the step reached input 0, whose gradient history began before the step");
}

// Eager code computes gradients of results that a captured step returned.
TEST(Footguns, GradientsOfCapturedResults) {
  Tensor w = tensor({1, 2}), e = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  e.requires_grad(true);
  auto body = [](const Tensor& x, const Tensor& p) { return tanh(x * p) * 2; };
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {body(in[0], w)}; });
  for (int i = 1; i <= 5; ++i) {
    Tensor xa = tensor({0.1f * static_cast<float>(i), 0.5f}), xb = tensor({0.1f * static_cast<float>(i), 0.5f});
    xa.requires_grad(true);
    xb.requires_grad(true);
    w.set_grad(Tensor());
    e.set_grad(Tensor());
    const Tensor a = step({exp(xa)})[0], b = body(exp(xb), e);
    EXPECT_TRUE(bit_equal(a, b));
    backward(sum(a * a));
    backward(sum(b * b));
    EXPECT_TRUE(bit_equal(w.grad(), e.grad())) << i;
    EXPECT_TRUE(bit_equal(xa.grad(), xb.grad())) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, GradientsThatTheStepHasTakenAreSpent) {
  Tensor w = a_parameter();
  CapturedStep step = squares_of(w);
  for (int i = 0; i < 4; ++i) {
    const Tensor loss = step({tensor({1, 1})})[0];
    EXPECT_THROW(backward(loss), GradientError) << i;
  }
}

TEST(Footguns, CapturedResultsWhoseGradientNoGraphShows) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    return custom_gradient(
        {in[0] * w}, [](const Tensors& xs) -> Tensors { return {exp(xs[0])}; },
        [](const Tensors&, const Tensors&, const Tensors& dys) -> Tensors { return {dys[0]}; });
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = step({tensor({1, 1})})[0];
    const std::string text = message_of<GradientError>([&] { backward(sum(y)); });
    EXPECT_MENTIONS(
        text, "a captured step has no gradient: its gradient is steered by a custom_gradient at footguns_gradients_test.cpp:");
  }
}

TEST(Footguns, StateOverwrittenBeforeBackward) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * w}; });
  for (int i = 0; i < 3; ++i) {
    Tensor x = tensor({1, 1});
    x.requires_grad(true);
    const Tensor y = step({x})[0];
    {
      const NoGrad no_grad;
      add_(w, 1);
    }
    EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(y)); }), "was modified in place at");
  }
}

TEST(Footguns, NoGradientsOfGradientsThroughACapturedStep) {
  Tensor w = tensor({2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * w * w}; });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = step({tensor({1})})[0];
    EXPECT_MENTIONS(message_of<GradientError>([&] { gradients({sum(y)}, {w}, {.create_graph = true}); }),
                    "gives no gradients of gradients");
  }
}

TEST(Footguns, HistoryOfAnInputOfAScopeIsRefused) {
  Tensor w = tensor({2});
  w.requires_grad(true);
  const Tensor h = w * 2;
  Capture scope("step");
  EXPECT_MENTIONS(message_of<CaptureError>([&] { scope.input("x", h); }),
                  "the gradient history of input 'x' f32[1] began before the capture; detach() it");
}

}  // namespace
}  // namespace tapedeck
