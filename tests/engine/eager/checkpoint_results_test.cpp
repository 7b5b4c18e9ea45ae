// Tests checkpoint regions with several results and with a name. The oracle is the same code without a region.
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck::checkpoint_results_test {
namespace {

Tensor made(std::uint64_t seed, const Shape& shape) {
  manual_seed(seed);
  Tensor t = normal(shape);
  t.requires_grad(true);
  return t;
}

struct Outcome {
  std::vector<Tensor> values;  // results and gradients
  std::int64_t saved_bytes = 0;
};

using Body = std::function<std::vector<Tensor>(const Tensor& x, const Tensor& w)>;

// Two results of one product, with a draw between them.
std::vector<Tensor> two(const Tensor& x, const Tensor& w) {
  const Tensor h = tanh(matmul(x, w));
  return {dropout(h * exp(h), 0.25), square(h) + sin(h)};
}

// Runs forward and backward. `mixed` makes the loss of the results.
Outcome train(const Body& body, const std::function<Tensor(const std::vector<Tensor>&)>& mixed) {
  const Tensor x = made(1, {8, 8}), w = made(2, {8, 8});
  manual_seed(3);
  Outcome o;
  std::vector<Tensor> results = body(x, w);
  Tensor loss = mixed(results);
  o.saved_bytes = tape_stats().saved_bytes;
  backward(loss);
  for (const Tensor& r : results) o.values.push_back(r.detach());
  results.clear();
  loss = Tensor();
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  o.values.push_back(x.grad());
  o.values.push_back(w.grad());
  return o;
}

void expect_same(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_TRUE(a.values[i].defined() && b.values[i].defined()) << i;
    EXPECT_TRUE(bit_equal(a.values[i], b.values[i])) << "value " << i;
  }
}

std::vector<Tensor> kept(const Tensor& x, const Tensor& w) {
  return checkpoint([&] { return two(x, w); });
}

TEST(CheckpointResults, AllResultsHaveTheBitsAndGradientsOfPlainCode) {
  const auto both = [](const std::vector<Tensor>& r) { return sum(r[0] * r[1]); };
  const Outcome plain = train(two, both), region = train(kept, both);
  expect_same(plain, region);
  EXPECT_LT(region.saved_bytes, plain.saved_bytes);
}

TEST(CheckpointResults, OneOfThemMayGoUnused) {
  for (const std::size_t i : {0u, 1u}) {
    const auto one = [i](const std::vector<Tensor>& r) { return sum(r[i]); };
    expect_same(train(two, one), train(kept, one));
  }
}

TEST(CheckpointResults, NoneAndThoseFromOutside) {
  EXPECT_TRUE(checkpoint([] { return std::vector<Tensor>{}; }).empty());
  const Tensor x = made(1, {4});
  const std::vector<Tensor> r = checkpoint([&] { return std::vector<Tensor>{x, x * 2}; });
  EXPECT_EQ(r[0].impl(), x.impl());
  backward(sum(r[0] * r[1]));
  EXPECT_TRUE(bit_equal(x.grad(), (x * 4).detach()));
}

std::string last_path() {
  const Recorder& tape = *thread_state().tape;
  return tape.graph.nodes[static_cast<std::size_t>(tape.graph.node_count() - 1)].origin.path.str();
}

TEST(CheckpointResults, ANameIsAPartOfThePath) {
  const Tensor x = made(1, {4});
  const PathScope outside("net");
  const Tensor y = checkpoint([&] { return x * 2; }, "first");
  EXPECT_EQ(last_path(), "net.first");
  const std::vector<Tensor> z = checkpoint([&] { return std::vector<Tensor>{x * 3}; }, "second");
  EXPECT_EQ(last_path(), "net.second");
  const Tensor plain = x * 4;
  EXPECT_EQ(last_path(), "net");
  EXPECT_EQ(thread_state().region, kNone);
}

// Draws follow the path: a named region draws what a PathScope of this name draws.
TEST(CheckpointResults, NamedDrawsAreThoseOfAPathScope) {
  const auto named = [](const Tensor& x, const Tensor& w) { return checkpoint([&] { return two(x, w); }, "part"); };
  const auto scoped = [](const Tensor& x, const Tensor& w) {
    const PathScope path("part");
    return two(x, w);
  };
  const auto both = [](const std::vector<Tensor>& r) { return sum(r[0] + r[1]); };
  expect_same(train(named, both), train(scoped, both));
}

TEST(CheckpointResults, AnExceptionLeavesNothingBehind) {
  const Tensor x = made(1, {4});
  const std::int64_t nodes = tape_stats().nodes;
  EXPECT_THROW(checkpoint(
                   [&]() -> std::vector<Tensor> {
                     const Tensor y = x * 2;
                     throw UsageError("stop");
                   },
                   "broken"),
               UsageError);
  EXPECT_EQ(tape_stats().nodes, nodes);
  EXPECT_EQ(thread_state().region, kNone);
  EXPECT_TRUE(thread_state().path.empty());
}

}  // namespace
}  // namespace tapedeck::checkpoint_results_test
