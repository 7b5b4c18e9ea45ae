// Tests checkpoint(): it gives the bits of the same code without regions, and keeps fewer bytes on the tape.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Body = std::function<Tensor(const Tensor& x, const Tensor& w)>;

struct Outcome {
  Tensor loss, dx, dw;
  std::int64_t saved_bytes = 0, nodes = 0;
};

Tensor made(std::uint64_t seed, const Shape& shape) {
  manual_seed(seed);
  Tensor t = normal(shape);
  t.requires_grad(true);
  return t;
}

// Runs one forward and backward. `body` may open regions. The random draws start alike each time.
Outcome train(const Body& body) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  manual_seed(3);
  Outcome o;
  const Tensor loss = sum(body(x, w));
  o.saved_bytes = tape_stats().saved_bytes;
  o.nodes = tape_stats().nodes;
  backward(loss);
  EXPECT_EQ(tape_stats().saved_bytes, 0) << "all is freed on the way";
  o.loss = loss.detach();
  o.dx = x.grad();
  o.dw = w.grad();
  return o;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(bit_equal(a.loss, b.loss));
  ASSERT_TRUE(a.dx.defined() && a.dw.defined() && b.dx.defined() && b.dw.defined());
  EXPECT_TRUE(bit_equal(a.dx, b.dx));
  EXPECT_TRUE(bit_equal(a.dw, b.dw));
}

Tensor block(const Tensor& x, const Tensor& w) { return dropout(tanh(relu(matmul(x, w)) * 0.5), 0.3); }
Tensor kept(const Tensor& x, const Tensor& w) {
  return checkpoint([&] { return block(x, w); });
}

TEST(Checkpoint, GivesTheSameBitsAndKeepsLess) {
  const Outcome plain = train(block), region = train(kept);
  expect_same(plain, region);
  EXPECT_LT(region.saved_bytes, plain.saved_bytes);
  EXPECT_EQ(region.nodes, plain.nodes) << "recomputation is never recorded";
}

TEST(Checkpoint, InALoop) {
  auto loop = [](const Body& body) {
    return [body](const Tensor& x, const Tensor& w) {
      Tensor h = x;
      for (int i = 0; i < 4; ++i) h = body(h, w);
      return h;
    };
  };
  const Outcome plain = train(loop(block)), region = train(loop(kept));
  expect_same(plain, region);
  EXPECT_LT(region.saved_bytes, plain.saved_bytes);
}

TEST(Checkpoint, NestedRegionsJoin) {
  const Outcome plain = train([](const Tensor& x, const Tensor& w) { return block(block(x, w), w); });
  const Outcome nested =
      train([](const Tensor& x, const Tensor& w) { return checkpoint([&] { return kept(kept(x, w), w); }); });
  const Outcome one = train([](const Tensor& x, const Tensor& w) { return checkpoint([&] { return block(block(x, w), w); }); });
  expect_same(plain, nested);
  EXPECT_EQ(nested.saved_bytes, one.saved_bytes);
}

TEST(Checkpoint, ResultsMayBeUsedTwice) {
  auto twice = [](const Body& body) {
    return [body](const Tensor& x, const Tensor& w) {
      const Tensor h = body(x, w);
      return exp(h) + h * h;
    };
  };
  expect_same(train(twice(block)), train(twice(kept)));
}

TEST(Checkpoint, AValueFromInsideMayEscape) {
  auto leak = [](bool region) {
    return [region](const Tensor& x, const Tensor& w) {
      Tensor inner;
      auto body = [&] {
        inner = relu(matmul(x, w));
        return tanh(inner);
      };
      const Tensor h = region ? checkpoint(body) : body();
      return h + square(inner);
    };
  };
  expect_same(train(leak(false)), train(leak(true)));
}

TEST(Checkpoint, PartsWithoutAGradientAreFine) {
  const Tensor mask = uniform({8, 8});
  auto masked = [&](bool region) {
    return [&, region](const Tensor& x, const Tensor& w) {
      auto body = [&] { return where(less(mask, 0.5), relu(mask * 2) * matmul(x, w), exp(x)); };
      return region ? checkpoint(body) : body();
    };
  };
  expect_same(train(masked(false)), train(masked(true)));
}

TEST(Checkpoint, OnlyTheResultStays) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  const Tensor y = kept(x, w);
  EXPECT_EQ(tape_stats().saved_bytes, x.bytes() + w.bytes() + rng_state().bytes() + 4)
      << "what the region read: the number 0.5 too";
}

TEST(Checkpoint, RetainWorksThroughARegion) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  const Tensor loss = sum(kept(x, w));
  backward(loss, {.retain = true});
  const Tensor once = x.grad();
  backward(loss);
  EXPECT_TRUE(bit_equal(x.grad(), once + once));
  EXPECT_THROW(backward(loss), GradientError);
}

TEST(Checkpoint, AnExceptionLeavesNothingBehind) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  EXPECT_THROW(checkpoint([&]() -> Tensor {
                 const Tensor h = matmul(x, w);
                 return matmul(h, tensor({1}));
               }),
               TypeError);
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  expect_same(train(block), train(kept));
}

TEST(Checkpoint, ResultWithoutHistoryLeavesNothingBehind) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  const Tensor y = checkpoint([&] { return matmul(x, w).detach(); });
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(Checkpoint, WritingWhatARegionReadIsAnError) {
  const Tensor x = made(1, {8, 8});
  const Tensor w = normal({8, 8});
  const Tensor loss = sum(kept(x, w));
  apply_in_place(ops::neg, std::vector<Tensor>{w}, nullptr, {__FILE__, __LINE__});
  EXPECT_MENTIONS(testing::message_of<GradientError>([&] { backward(loss); }), "was modified in place at");
}

}  // namespace
}  // namespace tapedeck
