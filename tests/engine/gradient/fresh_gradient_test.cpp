// Tests the mark that tells whether a gradient is new: backward sets it, optimizers and zero_grad() clear it. The expected
// marks are MXNet's, or follow from which leaves a loss depends on.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

Tensor filled_leaf(double value) { return full({2, 2}, value, DType::f32).requires_grad(true); }

// MXNet's test, step by step.
TEST(FreshGradient, T113_DetachUpdatedGrad) {
  Tensor x = filled_leaf(1), y = filled_leaf(1);
  EXPECT_FALSE(grad_is_fresh(x));
  EXPECT_FALSE(grad_is_fresh(y));
  backward(x + 2 + y, {.head = ones({2, 2})});
  EXPECT_TRUE(bit_equal(x.grad(), ones({2, 2})));
  EXPECT_TRUE(grad_is_fresh(x));
  EXPECT_TRUE(grad_is_fresh(y));

  x.set_grad(zeros({2, 2}));
  mark_grad_used(x);
  mark_grad_used(y);
  EXPECT_FALSE(grad_is_fresh(x));
  EXPECT_FALSE(grad_is_fresh(y));
  backward((x + 2).detach() + y, {.head = ones({2, 2})});
  EXPECT_TRUE(bit_equal(x.grad(), zeros({2, 2})));
  EXPECT_FALSE(grad_is_fresh(x));
  EXPECT_TRUE(grad_is_fresh(y));
}

TEST(FreshGradient, AnOptimizerUsesIt) {
  Tensor a = filled_leaf(1), b = filled_leaf(2), frozen = filled_leaf(3);
  Sgd optimizer({a, b, frozen}, {.lr = 0.5});
  backward(sum(a * b * frozen));
  frozen.requires_grad(false);
  optimizer.step();
  EXPECT_FALSE(grad_is_fresh(a));
  EXPECT_FALSE(grad_is_fresh(b));
  EXPECT_TRUE(a.grad().defined());
  EXPECT_TRUE(grad_is_fresh(frozen)) << "it was not updated";
  backward(sum(a * 3));
  EXPECT_TRUE(grad_is_fresh(a)) << "added to";
  EXPECT_FALSE(grad_is_fresh(b)) << "the gradient of an earlier loss";
  optimizer.step_if(scalar(0, DType::boolean));
  EXPECT_FALSE(grad_is_fresh(a)) << "whether or not the condition holds";
}

TEST(FreshGradient, ClearedWithTheGradient) {
  Tensor a = filled_leaf(1);
  Sgd optimizer({a}, {.lr = 0.5});
  backward(sum(a));
  optimizer.zero_grad();
  EXPECT_FALSE(grad_is_fresh(a));
  a.set_grad(ones({2, 2}));
  EXPECT_FALSE(grad_is_fresh(a)) << "backward did not write it";
  mark_grad_fresh(a);
  EXPECT_TRUE(grad_is_fresh(a));
}

TEST(FreshGradient, KeptByClippingAndSharedByHandles) {
  Tensor a = filled_leaf(1);
  const Tensor other = a;
  backward(sum(a * 5));
  clip_grad_norm_({a}, 1);
  EXPECT_TRUE(grad_is_fresh(other));
  EXPECT_FALSE(grad_is_fresh(a.detach())) << "another tensor";
  mark_grad_used(other);
  clip_grad_value_({a}, 0.1);
  EXPECT_FALSE(grad_is_fresh(a)) << "clipping makes no old gradient new";
}

TEST(FreshGradient, OfRequestsAndResults) {
  Tensor written = filled_leaf(1), none = filled_leaf(1);
  written.grad_request(GradRequest::write);
  none.grad_request(GradRequest::none);
  Tensor h = written * none;
  h.retain_grad();
  backward(sum(h));
  EXPECT_TRUE(grad_is_fresh(written));
  EXPECT_FALSE(grad_is_fresh(none));
  EXPECT_TRUE(grad_is_fresh(h)) << "retained";
  Tensor asked = filled_leaf(1);
  EXPECT_TRUE(gradients({sum(asked * 2)}, {asked})[0].defined());
  EXPECT_FALSE(grad_is_fresh(asked)) << "gradients() writes no grad()";
}

TEST(FreshGradient, WithoutATensorOrAGradient) {
  const Tensor undefined, t = filled_leaf(1);
  EXPECT_THROW(grad_is_fresh(undefined), TypeError);
  EXPECT_THROW(mark_grad_used(undefined), TypeError);
  EXPECT_THROW(mark_grad_fresh(undefined), TypeError);
  mark_grad_used(t);
  EXPECT_FALSE(grad_is_fresh(t));
  const std::string text = testing::message_of<UsageError>([&] { mark_grad_fresh(t); });
  EXPECT_MENTIONS(text, "[mark_grad_fresh] the tensor has no gradient");
  EXPECT_MENTIONS(text, "fresh_gradient_test.cpp:");
}

}  // namespace
}  // namespace tapedeck
