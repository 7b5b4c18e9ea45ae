// Tests that a captured step leaves the gradients of its tensors as fresh or as used as the same eager code does, call by call.
// The oracle is eager code.
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <functional>

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

// Two parameters with an optimizer for the first of them.
struct MarkedTraining {
  Tensor w = tensor({1, 2}).requires_grad(true).name("w").role(Role::parameter);
  Tensor v = tensor({3, 4}).requires_grad(true).name("v").role(Role::parameter);
  Sgd optimizer{{w}, {.lr = 0.125, .momentum = 0.5}};
};
using Body = std::function<Tensors(MarkedTraining&, const Tensors&)>;

// The marks of w and v after each call.
std::vector<bool> marks_of(const Body& body, bool captured, const std::function<void(MarkedTraining&)>& between) {
  MarkedTraining t;
  CapturedStep step = capture([&](const Tensors& in) { return body(t, in); });
  std::vector<bool> marks;
  for (int i = 0; i < 5; ++i) {
    between(t);
    const Tensors in{tensor({0.5, 0.25})};
    captured ? step(in) : body(t, in);
    marks.push_back(grad_is_fresh(t.w));
    marks.push_back(grad_is_fresh(t.v));
  }
  if (captured) {
    EXPECT_GE(step.replays(), 2) << "the test is about replays";
  }
  return marks;
}

std::vector<bool> expect_marks_as_eager(
    const Body& body, const std::function<void(MarkedTraining&)>& between = [](MarkedTraining&) {}) {
  const std::vector<bool> eager = marks_of(body, false, between);
  EXPECT_EQ(marks_of(body, true, between), eager);
  return eager;
}

void zero(MarkedTraining& t) {
  t.w.set_grad(Tensor());
  t.v.set_grad(Tensor());
}

TEST(GradientMarks, BackwardWritesAndTheOptimizerUses) {
  const std::vector<bool> marks = expect_marks_as_eager(
      [](MarkedTraining& t, const Tensors& in) -> Tensors {
        const Tensor loss = sum(t.w * t.v * in[0]);
        backward(loss);
        t.optimizer.step();
        return {loss};
      },
      zero);
  EXPECT_EQ(marks, (std::vector<bool>{false, true, false, true, false, true, false, true, false, true}));
}

TEST(GradientMarks, BackwardAlone) {
  const std::vector<bool> marks = expect_marks_as_eager(
      [](MarkedTraining& t, const Tensors& in) -> Tensors {
        const Tensor loss = sum(t.w * in[0]);
        backward(loss);
        return {loss};
      },
      zero);
  EXPECT_TRUE(marks[0]);
  EXPECT_FALSE(marks[1]);
}

TEST(GradientMarks, ClippedBeforeTheUpdate) {
  expect_marks_as_eager(
      [](MarkedTraining& t, const Tensors& in) -> Tensors {
        const Tensor loss = sum(t.w * t.v * in[0]);
        backward(loss);
        clip_grad_norm_({t.w, t.v}, 0.5);
        t.optimizer.step();
        return {loss};
      },
      zero);
}

TEST(GradientMarks, ASecondBackwardAfterTheUpdate) {
  const std::vector<bool> marks = expect_marks_as_eager(
      [](MarkedTraining& t, const Tensors& in) -> Tensors {
        backward(sum(t.w * in[0]));
        t.optimizer.step();
        const Tensor loss = sum(square(t.w) * in[0]);
        backward(loss);
        return {loss};
      },
      zero);
  EXPECT_TRUE(marks[0]);
}

// The gradients are there before the step, which only uses them.
TEST(GradientMarks, AnUpdateAlone) {
  const std::vector<bool> marks = expect_marks_as_eager(
      [](MarkedTraining& t, const Tensors& in) -> Tensors {
        t.optimizer.step();
        return {in[0] * 2};
      },
      [](MarkedTraining& t) {
        zero(t);
        backward(sum(t.w * t.v));
      });
  EXPECT_FALSE(marks[0]);
  EXPECT_TRUE(marks[1]);
}

// A step that only reads the gradients leaves the marks alone, whatever they are.
TEST(GradientMarks, AStepThatOnlyReads) {
  int call = 0;
  expect_marks_as_eager([](MarkedTraining& t, const Tensors& in) -> Tensors { return {in[0] + t.w.grad()}; },
                        [&](MarkedTraining& t) {
                          zero(t);
                          backward(sum(t.w * t.v));
                          if (call++ % 5 < 3) mark_grad_used(t.w);
                        });
}

TEST(GradientMarks, ZeroGradInTheStep) {
  const std::vector<bool> marks = expect_marks_as_eager([](MarkedTraining& t, const Tensors& in) -> Tensors {
    const Tensor loss = sum(t.w * in[0]);
    backward(loss);
    t.optimizer.step();
    t.optimizer.zero_grad();
    return {loss};
  });
  EXPECT_FALSE(marks[0]);
}

// An input that is a leaf: the function sees a stand-in of it.
TEST(GradientMarks, OfAnInput) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor loss = sum(square(in[0]));
    backward(loss);
    return {loss};
  });
  Tensor x = tensor({1, 2}).requires_grad(true);
  for (int i = 0; i < 5; ++i) {
    x.set_grad(Tensor());
    step({x});
    EXPECT_TRUE(grad_is_fresh(x)) << i;
  }
  EXPECT_GE(step.replays(), 2);
}

}  // namespace
}  // namespace tapedeck
