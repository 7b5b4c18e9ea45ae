// Tests gradients as values: higher orders, several targets, hooks, requests, custom gradients, and which tensors the tape
// keeps and for how long. Expected values are written by hand.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::message_of;
using Floats = std::vector<float>;

Tensor listed_leaf(std::initializer_list<float> values) { return tensor(values).requires_grad(true); }

TEST(Gradients, OfHigherOrder) {
  const Tensor x = listed_leaf({0.5f});
  Tensor y = sin(x);
  const double expected[] = {std::cos(0.5), -std::sin(0.5), -std::cos(0.5), std::sin(0.5), std::cos(0.5)};
  for (double e : expected) {
    y = gradients({y}, {x}, {.create_graph = true})[0];
    EXPECT_NEAR(y.item(), e, 1e-6);
  }
}

TEST(Gradients, BackwardOfAGradientReachesTheLeaf) {
  const Tensor x = listed_leaf({1});
  const Tensor g = gradients({exp(x) + x}, {x}, {.create_graph = true})[0];
  EXPECT_NEAR(g.item(), 3.7182818, 1e-6);
  backward(g);
  EXPECT_NEAR(x.grad().item(), 2.7182818, 1e-6);
}

TEST(Gradients, WithBackwardRecordedLeavesHoldDifferentiableGradients) {
  const Tensor x = listed_leaf({3});
  backward(x * x * x, {.create_graph = true});
  EXPECT_EQ(x.grad().item(), 27);
  EXPECT_EQ(gradients({x.grad()}, {x})[0].item(), 18);
  EXPECT_GT(tape_stats().nodes, 0);
  Tensor(x).set_grad(Tensor());  // breaks the cycle of leaf, gradient and tape
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(Gradients, OfSeveralTargetsAndOfOneGivenTwice) {
  const Tensor x = listed_leaf({2}), y = x * x, z = y * y;
  const std::vector<Tensor> g = gradients({z, y}, {x, y});
  EXPECT_EQ(g[0].item(), 32 + 4) << "4 x^3 + 2 x";
  EXPECT_EQ(g[1].item(), 8 + 1);
  const Tensor u = listed_leaf({5}), v = u * 3;
  EXPECT_EQ(gradients({v, v}, {u})[0].item(), 6);
}

TEST(Gradients, WithHeadsOfTheirOwn) {
  const Tensor x = listed_leaf({1, 2, 3}), y = x * 2, z = x * x;
  const Tensor g = gradients({y, z}, {x}, {.heads = {tensor({1, 10, 100}), tensor({1, 1, 1})}})[0];
  EXPECT_EQ(g.to_vector<float>(), (Floats{4, 24, 206}));
}

TEST(Gradients, OfWhatIsNotReached) {
  const Tensor x = listed_leaf({1}), unused = listed_leaf({1});
  EXPECT_FALSE(gradients({x * 2}, {unused})[0].defined());
  EXPECT_MENTIONS(message_of<GradientError>([&] { gradients({x * 2}, {unused}, {.allow_unused = false}); }),
                  "no target depends on wrt 0: f32[1]");
  EXPECT_FALSE(x.grad().defined()) << "gradients() writes no leaf";
}

TEST(Gradients, SecondUseWithoutRetainIsAnError) {
  const Tensor x = listed_leaf({2}), y = x * x;
  backward(y, {.retain = true});
  backward(y);
  EXPECT_EQ(x.grad().item(), 8) << "two backwards add up";
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(y); }),
                  "saved was freed by an earlier backward; call that with retain");
}

TEST(Gradients, AddUpForAnyNumberOfUses) {
  for (int n = 1; n <= 20; ++n) {
    const Tensor x = listed_leaf({1.5f});
    Tensor y = x;
    for (int i = 1; i < n; ++i) y = y + x;
    backward(n == 1 ? y * 1 : y);
    EXPECT_EQ(x.grad().item(), n);
  }
}

TEST(Gradients, AreWrittenAddedOrLeftOutAsTheLeafRequests) {
  Tensor add = listed_leaf({1}), write = listed_leaf({1}), none = listed_leaf({1});
  write.grad_request(GradRequest::write);
  none.grad_request(GradRequest::none);
  for (int i = 0; i < 3; ++i) backward(add * 2 + write * 3 + none * 4 + write);
  EXPECT_EQ(add.grad().item(), 6);
  EXPECT_EQ(write.grad().item(), 4);
  EXPECT_FALSE(none.grad().defined());
}

TEST(Gradients, OfTwoLeavesShareNoBytes) {
  const Tensor a = listed_leaf({1, 2}), b = listed_leaf({3, 4}), head = tensor({1, 1});
  backward(a + b, {.head = head});
  zero_(a.grad());
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{1, 1}));
  EXPECT_EQ(head.to_vector<float>(), (Floats{1, 1}));
}

TEST(Gradients, PassThroughHooks) {
  Tensor x = listed_leaf({1, 2});
  Floats seen;
  x.on_grad([](const Tensor& g) { return g * 10; });
  Tensor y = x * 3;
  y.on_grad([&](const Tensor& g) {
    seen = g.to_vector<float>();
    return Tensor();
  });
  y.retain_grad();
  backward(sum(y * y));
  EXPECT_EQ(seen, (Floats{6, 12}));
  EXPECT_EQ(y.grad().to_vector<float>(), (Floats{6, 12}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{180, 360}));
  EXPECT_MENTIONS(message_of<GradientError>([] { tensor({1}).on_grad([](const Tensor& g) { return g; }); }),
                  "needs no gradient");
  Tensor z = x * 1;
  z.on_grad([](const Tensor&) { return tensor({1, 2, 3}); });
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(z)); }), "a hook returned f32[3] for a gradient of f32[2]");
}

std::vector<Tensor> times_ten(const Tensor& x, int seen_as) {
  return custom_gradient(
      {x}, [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0] * 10}; },
      [seen_as](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
        return std::vector<Tensor>{dys[0] * seen_as};
      });
}

TEST(Gradients, OfOnesOwn) {
  const Tensor x = listed_leaf({1, 2});
  const Tensor y = times_ten(x, 20)[0];
  EXPECT_EQ(y.to_vector<float>(), (Floats{10, 20}));
  backward(sum(y * 3));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{60, 60}));
  EXPECT_FALSE(times_ten(tensor({1}), 20)[0].requires_grad());
}

TEST(Gradients, OfOnesOwnAreChecked) {
  const Tensor x = listed_leaf({1, 2});
  auto with = [&](std::vector<Tensor> dxs) {
    return custom_gradient(
        {x}, [](const std::vector<Tensor>& xs) { return xs; },
        [dxs](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>&) { return dxs; })[0];
  };
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(with({}))); }), "returned 0 gradients for 1 operands");
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(with({tensor({1})}))); }),
                  "returned f32[1] for operand 0, which is f32[2]");
  backward(sum(with({Tensor()})));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Kept, AMaskInsteadOfTheOperands) {
  const Tensor a = listed_leaf({1, 5, 3, 7}), b = listed_leaf({4, 2, 6, 0});
  Tensor y = maximum(a + 1, b + 1);
  const std::vector<Saved> kept = saved();
  std::int64_t bytes = 0;
  for (const Saved& s : kept) {
    bytes += s.bytes;
    EXPECT_EQ(s.type.dtype, DType::boolean) << s.reason;
    EXPECT_MENTIONS(s.reason, "forward part of 'maximum' at");
  }
  EXPECT_EQ(bytes, 4) << "one byte an element";
  backward(sum(y * tensor({1, 10, 100, 1000})));
  EXPECT_EQ(a.grad().to_vector<float>(), (Floats{0, 10, 0, 1000}));
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{1, 0, 100, 0}));
}

TEST(Kept, NothingWhereShapesAreEnough) {
  const Tensor a = listed_leaf({1, 2, 3});
  const Tensor y = sum(broadcast_to(reshape(a + 1, {3, 1}), {3, 10}));
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  EXPECT_TRUE(saved().empty());
  backward(y);
  EXPECT_EQ(a.grad().to_vector<float>(), (Floats{10, 10, 10}));
}

TEST(Kept, EachStorageIsListedOnceWithAllItsReaders) {
  const Tensor a = listed_leaf({1, 2}), b = a * 3, c = mul(b, b);
  const std::vector<Saved> kept = saved();
  ASSERT_EQ(kept.size(), 2u) << "b, and the number 3 for a's gradient";
  EXPECT_MENTIONS(kept[1].reason, "operand 0 of 'mul' at");
  EXPECT_MENTIONS(kept[1].reason, "; operand 1 of 'mul' at");
}

TEST(Freeing, DropsABranchThatNobodyHolds) {
  const Tensor x = listed_leaf({1, 2});
  const Tensor kept = exp(x);
  {
    const Tensor gone = sum(exp(exp(x * 2)));
    EXPECT_EQ(tape_stats().nodes, 5);
  }
  EXPECT_EQ(tape_stats().nodes, 1);
  EXPECT_EQ(tape_stats().values, 2) << "x and its exp";
  EXPECT_EQ(tape_stats().saved_bytes, 8);
  backward(sum(kept));
  EXPECT_EQ(tape_stats().nodes, 1);
}

TEST(Freeing, AHandleInTheMiddleKeepsItsPastOnly) {
  const Tensor x = listed_leaf({1});
  Tensor middle;
  {
    middle = exp(x * 2);
    const Tensor end = exp(exp(middle));
    EXPECT_EQ(tape_stats().nodes, 4);
  }
  EXPECT_EQ(tape_stats().nodes, 2);
  middle = Tensor();
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().values, 0);
}

TEST(Freeing, AResultCarriedFromStepToStepDoesNotGrowTheTape) {
  const Tensor w = listed_leaf({0.5f});
  Tensor previous = w * 1, current;
  for (int i = 0; i < 5000; ++i) {
    current = w * 2;
    const Tensor loss = current + previous.detach();
    backward(sum(loss));
    previous = current;
    if (i % 1000 == 0) {
      ASSERT_LE(tape_stats().nodes, 4);
    }
  }
  EXPECT_TRUE(depends(previous, w));
}

TEST(Freeing, DetachInPlaceCutsThePast) {
  const Tensor x = listed_leaf({3});
  Tensor y = x * 2;
  const Tensor z = y * y;
  EXPECT_TRUE(depends(z, x));
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(tape_stats().nodes, 1) << "what only made y is gone";
  EXPECT_FALSE(depends(z, x));
  const Tensor u = y * 5;
  EXPECT_FALSE(u.requires_grad());
}

TEST(Depends, FollowsTheTape) {
  const Tensor a = listed_leaf({1}), b = listed_leaf({2}), c = a * 2, d = c + b, e = b * b;
  EXPECT_TRUE(depends(d, a));
  EXPECT_TRUE(depends(d, b));
  EXPECT_TRUE(depends(d, c));
  EXPECT_FALSE(depends(e, a));
  EXPECT_FALSE(depends(c, d));
  EXPECT_TRUE(depends(a, a));
}

TEST(AutocastScope, RunsProductsLowAndLossesHigh) {
  const Tensor x = normal({4, 8}), w = normal({8, 3}).requires_grad(true);
  const Tensor labels = from_vector(std::vector<std::int32_t>{0, 1, 2, 0}, {4});
  Tensor loss, logits;
  {
    const Autocast autocast(DType::bf16);
    logits = matmul(x, w);
    loss = cross_entropy(logits, labels);
  }
  EXPECT_EQ(logits.dtype(), DType::bf16);
  EXPECT_EQ(loss.dtype(), DType::f32);
  backward(loss);
  EXPECT_EQ(w.grad().dtype(), DType::f32);
  const Tensor exact = w.detach().requires_grad(true);
  backward(cross_entropy(matmul(x, exact), labels));
  const Floats low = w.grad().to_vector<float>(), full = exact.grad().to_vector<float>();
  for (std::size_t i = 0; i < low.size(); ++i) EXPECT_NEAR(low[i], full[i], 0.02);
  EXPECT_MENTIONS(message_of<UsageError>([] { Autocast wrong(DType::f32); }), "[autocast] casts to f16 or bf16, not f32");
}

// Such a matrix is cast as it lies; results and gradients are those of a cast into rows.
TEST(AutocastScope, AloneMakesTheLossOfHalvesF32) {
  const Tensor labels = from_vector(std::vector<std::int32_t>{0, 1, 2, 0}, {4});
  const Tensor x = cast(normal({4, 3}), DType::bf16), plain = x.detach().requires_grad(true),
               cast_up = x.detach().requires_grad(true);
  const Tensor loss = cross_entropy(plain, labels);
  EXPECT_EQ(loss.dtype(), DType::bf16);
  Tensor wide;
  {
    const Autocast autocast(DType::bf16);
    wide = cross_entropy(cast_up, labels);
  }
  ASSERT_EQ(wide.dtype(), DType::f32);
  EXPECT_TRUE(bit_equal(cast(wide, DType::bf16), loss));
  backward(loss);
  backward(wide);
  EXPECT_EQ(plain.grad().dtype(), DType::bf16);
  EXPECT_TRUE(bit_equal(plain.grad(), cast_up.grad()));
}

TEST(AutocastScope, CastsATransposedMatrixLikeAnyOther) {
  const Tensor x = normal({4, 8}), w = normal({3, 8}).requires_grad(true), same = w.detach().requires_grad(true);
  Tensor y;
  {
    const Autocast autocast(DType::bf16);
    y = matmul(x, transpose_last(w));
  }
  const Tensor wanted = matmul(cast(x, DType::bf16), cast(contiguous(transpose_last(same)), DType::bf16));
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(cast(y, DType::f32).to_vector<float>(), cast(wanted, DType::f32).to_vector<float>());
  backward(sum(square(cast(y, DType::f32))));
  backward(sum(square(cast(wanted, DType::f32))));
  EXPECT_EQ(w.grad().to_vector<float>(), same.grad().to_vector<float>());
}

// The mask of kept operands has 32 bits. The last bit stands for all further operands.
TEST(CustomGradient, TakesAnyNumberOfOperandsAndResults) {
  std::vector<Tensor> xs;
  for (int i = 0; i < 40; ++i) {
    xs.push_back(tensor({static_cast<float>(i)}));
    xs.back().requires_grad(true);
  }
  const auto forward = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    for (const Tensor& x : in) out.push_back(x * 2);
    return out;
  };
  const auto backward_of = [](const std::vector<Tensor>& in, const std::vector<Tensor>& ys, const std::vector<Tensor>& dys) {
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < in.size(); ++i) out.push_back(dys[i] * in[i] + ys[i]);
    return out;
  };
  backward(sum(concat(custom_gradient(xs, forward, backward_of), 0)));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(xs[i].grad().item(), 3 * i);
}

}  // namespace
}  // namespace tapedeck
