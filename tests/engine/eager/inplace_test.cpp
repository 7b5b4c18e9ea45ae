// Tests in-place writes: values seen through views and bases, gradients through writes, stale saved values, refused writes.
// The oracle is the same program without writes.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <random>

namespace tapedeck {
namespace {

using testing::message_of;
using Floats = std::vector<float>;

Tensor leaf(std::initializer_list<float> values) { return tensor(values).requires_grad(true); }

TEST(InPlaceWrites, ShowInEveryView) {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6});
  const Tensor m = reshape(x, {2, 3}), column = slice(m, 1, 1, 2), t = transpose(m, {1, 0});
  add_(column, 10);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 12, 3, 4, 15, 6}));
  EXPECT_EQ(t.to_vector<float>(), (Floats{1, 4, 12, 15, 3, 6}));
  mul_(t, tensor({1, 0}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 12, 3, 0, 0, 0}));
  copy_(x, 7);
  zero_(slice(x, 0, 4, 6));
  EXPECT_EQ(x.to_vector<float>(), (Floats{7, 7, 7, 7, 0, 0}));
  slice_assign_(m, {0, 0}, {2, 3}, {1, 2}, tensor({-1, -2}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{-1, 7, -2, -1, 0, -2}));
  masked_fill_(x, less(x, 0), 5);
  EXPECT_EQ(x.to_vector<float>(), (Floats{5, 7, 5, 5, 0, 5}));
  fill_(diagonal(reshape(slice(x, 0, 0, 4), {2, 2})), 9);
  EXPECT_EQ(x.to_vector<float>(), (Floats{9, 7, 5, 9, 0, 5}));
}

TEST(InPlaceWrites, OverlappingOperandsAreReadBeforeTheyAreWritten) {
  const Tensor x = tensor({1, 2, 3, 4});
  copy_(slice(x, 0, 1, 4), slice(x, 0, 0, 3));
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 1, 2, 3}));
  const Tensor m = reshape(tensor({1, 2, 3, 4}), {2, 2});
  add_(m, transpose(m, {1, 0}));
  EXPECT_EQ(m.to_vector<float>(), (Floats{2, 5, 5, 8}));
}

TEST(InPlaceWrites, GradientsFlowThroughAWrittenTensor) {
  const Tensor w = leaf({1, 2, 3});
  Tensor y = w * 2;
  add_(y, w);  // y = 3 w
  mul_(y, 5);  // y = 15 w
  backward(sum(y));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{15, 15, 15}));
}

TEST(InPlaceWrites, GradientsFlowThroughSliceAssignment) {
  const Tensor w = leaf({1, 2}), b = leaf({10, 20, 30, 40});
  Tensor x = b * 1;
  slice_assign_(x, {1}, {3}, w * 3);
  EXPECT_EQ(x.to_vector<float>(), (Floats{10, 3, 6, 40}));
  backward(sum(x * tensor({1, 10, 100, 1000})));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{30, 300}));
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{1, 0, 0, 1000}));
}

TEST(InPlaceWrites, ABaseWithoutHistoryGainsOne) {
  const Tensor w = leaf({1, 2});
  Tensor buffer = zeros({3, 2});
  for (int i = 0; i < 3; ++i) copy_(reshape(slice(buffer, 0, i, i + 1), {2}), w * (i + 1));
  EXPECT_TRUE(buffer.requires_grad());
  backward(sum(buffer * 2));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{12, 12}));
}

TEST(InPlaceWrites, AViewTakenBeforeTheWriteSeesItsGradient) {
  const Tensor w = leaf({3});
  Tensor x = zeros({2, 2});
  const Tensor row = slice(x, 0, 0, 1);
  copy_(x, w * 4);
  EXPECT_TRUE(row.requires_grad());
  backward(sum(row));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{8}));
}

TEST(InPlaceWrites, ThroughATransposedSliceOfAReshape) {
  const Tensor w = leaf({2});
  Tensor x = leaf({1, 2, 3, 4, 5, 6}) * 1;
  const Tensor corner = slice(transpose(reshape(x, {2, 3}), {1, 0}), {1, 0}, {3, 1});  // shows elements 1 and 2 of x
  mul_(corner, w);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 4, 6, 4, 5, 6}));
  const std::vector<Tensor> g = gradients({sum(x * x)}, {w});
  EXPECT_EQ(g[0].to_vector<float>(), (Floats{2 * (4 * 2 + 6 * 3)}));
}

TEST(InPlaceWrites, UnderNoGradGradientsPassAsIfNothingWasWritten) {
  const Tensor w = leaf({1, 2});
  Tensor y = w * 3;
  {
    const NoGrad no_grad;
    fill_(y, 100);
  }
  backward(sum(y * 2));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{6, 6}));
}

TEST(InPlaceWrites, AStaleSavedValueNamesBothPlaces) {
  const Tensor w = leaf({1, 2});
  Tensor y = exp(w);
  const int saved = __LINE__ - 1;
  add_(y, 1);
  const int written = __LINE__ - 1;
  const std::string text = message_of<GradientError>([&] { backward(sum(y)); });
  EXPECT_MENTIONS(text, "f32[2] saved for 'exp'");
  EXPECT_MENTIONS(text, "inplace_test.cpp:" + std::to_string(saved));
  EXPECT_MENTIONS(text, "modified in place at");
  EXPECT_MENTIONS(text, "inplace_test.cpp:" + std::to_string(written));
}

TEST(InPlaceWrites, WhatBackwardDoesNotReadMayBeOverwritten) {
  const Tensor w = leaf({1, 2});
  Tensor y = w + 1;
  const Tensor z = y + y;
  zero_(y);
  backward(sum(z));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2, 2}));
}

TEST(InPlaceWrites, OfLeavesAreRefused) {
  const Tensor w = leaf({1, 2});
  EXPECT_MENTIONS(message_of<GradientError>([&] { add_(w, 1); }),
                  "[add] writes a leaf that requires a gradient in place; use NoGrad");
  EXPECT_MENTIONS(message_of<GradientError>([&] { zero_(slice(w, 0, 0, 1)); }),
                  "[full] writes a view of a leaf that requires a gradient in place");
  const NoGrad no_grad;
  add_(w, 1);
  EXPECT_EQ(w.to_vector<float>(), (Floats{2, 3}));
}

TEST(InPlaceWrites, ThroughABroadcastThatRepeatsNothing) {
  const Tensor w = leaf({3});
  Tensor x = leaf({1, 2}) * 1;
  copy_(slice(broadcast_to(x, {1, 2}), {0, 1}, {1, 2}), w * 4);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 12}));
  backward(sum(x * tensor({1, 10})));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{40}));
}

TEST(InPlaceWrites, OneElementOfARepeatedOneIsRefused) {
  const Tensor x = tensor({5});
  const Tensor one = slice(broadcast_to(x, {3}), 0, 1, 2);
  EXPECT_MENTIONS(message_of<TypeError>([&] { zero_(one); }),
                  "[full] cannot write f32[1] in place: it shows f32[1], repeated by broadcast_to");
  EXPECT_EQ(x.item(), 5);
}

TEST(InPlaceWrites, RefuseWhatDoesNotFit) {
  const Tensor i = from_vector(std::vector<std::int32_t>{1, 2}, {2});
  EXPECT_MENTIONS(message_of<TypeError>([&] { add_(i, 0.5); }), "[add] cannot put a fraction into i32[2] in place");
  EXPECT_MENTIONS(message_of<TypeError>([&] { copy_(i, tensor({1, 2})); }), "[copy] cannot put f32[2] into i32[2] in place");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    copy_(tensor({1, 2}), tensor({1, 2, 3}));
                  }),
                  "[broadcast_to] f32[3] does not broadcast to [2]");
  EXPECT_MENTIONS(message_of<TypeError>([] { zero_(Tensor()); }), "[full] the tensor to write is undefined");
}

TEST(InPlaceWrites, AThousandStepsLeakNothing) {
  const Tensor w = leaf({1, 2, 3, 4});
  Tensor state = zeros({4});
  for (int i = 0; i < 1000; ++i) {
    const Tensor view = slice(state, 0, 1, 3);
    mul_(view, 0.5);
    add_(view, slice(w, 0, 0, 2));
    backward(sum(state * state));
    state.detach_();
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_LE(tape_stats().values, 1) << "the detached state itself";
}

// A random program that writes through views must give the gradients of the same program without writes.
TEST(InPlaceWrites, RandomProgramsAgreeWithPureOnes) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const Tensor a = leaf({1, -2, 3, 0.5, 2, -1}), b = leaf({0.5, 2, -1, 1.5, -0.5, 1});
    const Tensor a2 = leaf({1, -2, 3, 0.5, 2, -1}), b2 = leaf({0.5, 2, -1, 1.5, -0.5, 1});
    Tensor x = a * 1, pure = a2 * 1;
    for (int step = 0; step < 6; ++step) {
      const int start = below(4), stop = start + 1 + below(6 - start);
      const Tensor value = slice(b, 0, start, stop), pure_value = slice(b2, 0, start, stop);
      const Tensor window = slice(x, 0, start, stop), pure_window = slice(pure, 0, start, stop);
      Tensor next;
      switch (below(3)) {
        case 0:
          add_(window, value), next = pure_window + pure_value;
          break;
        case 1:
          copy_(window, value * 2), next = pure_value * 2;
          break;
        default:
          sub_(window, 1), next = pure_window - 1;
          break;
      }
      pure = slice_assign(pure, next, {start}, {stop});
    }
    ASSERT_TRUE(bit_equal(x, pure));
    backward(sum(x * x));
    backward(sum(pure * pure));
    ASSERT_TRUE(bit_equal(a.grad(), a2.grad()));
    if (b2.grad().defined()) {
      ASSERT_TRUE(bit_equal(b.grad(), b2.grad()));
    }
  }
}

}  // namespace
}  // namespace tapedeck
