// Tests keep_here(): ops that stay out of an open checkpoint region. The oracle is the same code without regions. How often an
// op runs is read from the profile of eager kernels.
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/eager_profile.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::keep_here_test {
namespace {

const char* const kProgram = "program";     // the file of the ops that the tests count; the line is the op's number
constexpr std::int64_t kBytes = 8 * 8 * 4;  // of each tensor below

Tensor made(std::uint64_t seed) {
  manual_seed(seed);
  Tensor t = normal({8, 8});
  t.requires_grad(true);
  return t;
}

// ---- random programs ----

// The scopes that a random program opens around ops.
enum class Scope { none, region, kept };

// A program of ops in randomly nested regions and keep_here() stretches. Programs with and without scopes run the same ops.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, bool with_scopes) : random_(seed), with_scopes_(with_scopes) {}

  Tensor run(const Tensor& x, const Tensor& w) {
    pool_ = {x, w};
    block(0, Scope::none);
    Tensor loss = sum(pool_.back());
    for (int i = 0; i < 3; ++i) loss = loss + sum(any());
    pool_.clear();
    return loss;
  }

  // By number of an op: the scope in which it ran.
  const std::vector<Scope>& scopes() const { return scopes_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Tensor any() {
    return pool_[pool_.size() - 1 - static_cast<std::size_t>(below(static_cast<int>(std::min<std::size_t>(pool_.size(), 5))))];
  }

  void block(int depth, Scope scope) {
    const int items = 2 + below(4);
    for (int i = 0; i < items; ++i) {
      const int kind = depth < 4 ? below(6) : 5;
      if (kind == 0) in_scope(Scope::region, scope == Scope::region ? scope : Scope::region, depth);
      if (kind == 1) in_scope(Scope::kept, scope == Scope::none ? scope : Scope::kept, depth);
      if (kind > 1) op(scope);
    }
  }

  void in_scope(Scope opens, Scope inside, int depth) {
    const auto fn = [&]() -> std::vector<Tensor> {
      block(depth + 1, inside);
      return {pool_.back()};
    };
    if (!with_scopes_)
      fn();
    else if (opens == Scope::region)
      checkpoint(fn);
    else
      keep_here(fn);
  }

  void op(Scope scope) {
    const auto number = static_cast<int>(scopes_.size());
    scopes_.push_back(scope);
    const Tensor a = any(), b = any();
    const auto counted = [&](const Tensor& t) { return Arg(t, kProgram, number); };
    switch (below(7)) {
      case 0:
        return pool_.push_back(tanh(counted(a)));
      case 1:
        return pool_.push_back(sigmoid(counted(a)));
      case 2:
        return pool_.push_back(sin(counted(a)) * b);
      case 3:
        return pool_.push_back(tanh(counted(matmul(a, b))));
      case 4:
        return pool_.push_back(dropout(a, 0.25));
      case 5:
        return pool_.push_back(transpose(a, {1, 0}) + b);
      default:
        return pool_.push_back(maximum(a, b));
    }
  }

  std::mt19937 random_;
  bool with_scopes_;
  std::vector<Tensor> pool_;
  std::vector<Scope> scopes_;
};

struct Outcome {
  Tensor loss, dx, dw;
  std::vector<Scope> scopes;
  std::map<int, int> runs;  // by number of an op: how often its tanh, sigmoid or sin ran, which no gradient runs
};

Outcome train(unsigned seed, bool with_scopes) {
  const Tensor x = made(1), w = made(2);
  manual_seed(3);
  RandomProgram program(seed, with_scopes);
  EagerProfile profile;
  Outcome o;
  {
    const Tensor loss = program.run(x, w);
    backward(loss);
    o.loss = loss.detach();
  }
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  EXPECT_EQ(tape_stats().nodes, 0);
  o.dx = x.grad(), o.dw = w.grad();
  o.scopes = program.scopes();
  for (const EagerEvent& event : profile.events()) {
    const std::string op = event.op;
    if (event.site.file == kProgram && (op == "tanh" || op == "sigmoid" || op == "sin")) ++o.runs[event.site.line];
  }
  return o;
}

bool same(const Tensor& a, const Tensor& b) { return a.defined() == b.defined() && (!a.defined() || bit_equal(a, b)); }

TEST(KeepHere, RandomNestingsHaveTheBitsOfPlainCode) {
  int kept = 0, again = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Outcome plain = train(seed, false), nested = train(seed, true);
    ASSERT_TRUE(same(plain.loss, nested.loss));
    ASSERT_TRUE(same(plain.dx, nested.dx));
    ASSERT_TRUE(same(plain.dw, nested.dw));
    ASSERT_EQ(plain.runs.size(), nested.runs.size());
    for (const auto& [number, runs] : nested.runs) {
      const Scope scope = nested.scopes[static_cast<std::size_t>(number)];
      ASSERT_LE(runs, scope == Scope::region ? 2 : 1) << "op " << number;
      kept += scope == Scope::kept;
      again += runs == 2;
    }
  }
  EXPECT_GT(kept, 300) << "many programs keep something";
  EXPECT_GT(again, 300) << "and many run something again";
}

// ---- memory and runs of small programs ----

struct Cost {
  std::int64_t saved_bytes = 0;
  std::map<std::string, int> runs;  // by op, of forward and backward
};

Cost cost_of(const std::function<Tensor(const Tensor& x, const Tensor& w)>& body) {
  const Tensor x = made(1), w = made(2);
  EagerProfile profile;
  Cost cost;
  {
    const Tensor loss = sum(body(x, w));
    cost.saved_bytes = tape_stats().saved_bytes;
    backward(loss);
  }
  EXPECT_EQ(tape_stats().saved_bytes, 0);
  for (const EagerEvent& event : profile.events()) ++cost.runs[event.op];
  return cost;
}

TEST(KeepHere, KeepsWhatItsGradientsReadAndWhatTheRegionReadsOfIt) {
  const Cost cost = cost_of([](const Tensor& x, const Tensor& w) {
    return checkpoint([&] { return sigmoid(keep_here([&] { return sin(tanh(keep_here([&] { return matmul(x, w); }))); })); });
  });
  EXPECT_EQ(cost.saved_bytes, 4 * kBytes) << "x, w, the result of tanh that sin reads, and the result of sin";
  EXPECT_EQ(cost.runs.at("matmul"), 3) << "one in forward, two gradients";
  EXPECT_EQ(cost.runs.at("tanh"), 1);
  EXPECT_EQ(cost.runs.at("sin"), 1);
  EXPECT_EQ(cost.runs.at("sigmoid"), 2);
}

TEST(KeepHere, KeepsNoOperandThatItsGradientDoesNotRead) {
  const Cost cost = cost_of([](const Tensor& x, const Tensor& w) {
    return checkpoint([&] {
      const Tensor h = tanh(matmul(x, w));
      return sigmoid(keep_here([&] { return exp(h); }));
    });
  });
  EXPECT_EQ(cost.saved_bytes, 3 * kBytes) << "x and w for the region, and the result of exp, which both read";
  EXPECT_EQ(cost.runs.at("tanh"), 2);
  EXPECT_EQ(cost.runs.at("exp"), 1);
}

// The outer region has nodes before and after the inner one. Each node of both runs again once.
TEST(KeepHere, ARegionInsideIsOneOfItsOwn) {
  const Cost cost = cost_of([](const Tensor& x, const Tensor& w) {
    return checkpoint([&] {
      const Tensor h = tanh(x * w);
      const Tensor k = keep_here([&] { return checkpoint([&] { return sin(sin(h)); }); });
      return sigmoid(sigmoid(k) * h);
    });
  });
  EXPECT_EQ(cost.saved_bytes, 4 * kBytes) << "x and w for the outer region, its h for the inner one, and k for the outer one";
  EXPECT_EQ(cost.runs.at("tanh"), 2);
  EXPECT_EQ(cost.runs.at("sin"), 4);
  EXPECT_EQ(cost.runs.at("sigmoid"), 4);
}

TEST(KeepHere, OutsideOfRegionsItOnlyRunsTheFunction) {
  const auto body = [](const Tensor& x, const Tensor& w) { return tanh(sin(x) * w); };
  const Cost plain = cost_of(body);
  const Cost kept = cost_of([&](const Tensor& x, const Tensor& w) { return keep_here([&] { return body(x, w); }); });
  EXPECT_EQ(kept.saved_bytes, plain.saved_bytes);
  EXPECT_EQ(kept.runs, plain.runs);
}

TEST(KeepHere, GivesSeveralResults) {
  const Tensor x = made(1);
  const Tensor y = checkpoint([&] {
    const std::vector<Tensor> two = keep_here([&] { return std::vector<Tensor>{x * 2, x * 3}; });
    return two[0] * two[1];
  });
  backward(sum(y));
  EXPECT_TRUE(bit_equal(x.grad(), (x * 3 * 2 + x * 2 * 3).detach()));
}

TEST(KeepHere, AnErrorLeavesTheRegionOpenAndNothingBehind) {
  const Tensor x = made(1);
  {
    const Tensor y = checkpoint([&] {
      const std::int32_t region = thread_state().region;
      const Tensor h = tanh(x);
      const auto fails = [&]() -> Tensor {
        EXPECT_EQ(thread_state().region, kNone);
        return matmul(h, tensor({1}));
      };
      EXPECT_THROW(keep_here(fails), TypeError);
      EXPECT_EQ(thread_state().region, region);
      return sin(h);
    });
    EXPECT_EQ(tape_stats().saved_bytes, kBytes) << "the rest is in the region, which reads x";
    backward(sum(y));
  }
  EXPECT_EQ(thread_state().region, kNone);
  EXPECT_EQ(tape_stats().nodes, 0);
  const Tensor plain = made(1);
  backward(sum(sin(tanh(plain))));
  EXPECT_TRUE(bit_equal(x.grad(), plain.grad()));
}

// A region without nodes of its own is forgotten, also where another region has opened and closed inside of it.
TEST(KeepHere, ARegionOfKeptOpsOnlyLeavesNothingBehind) {
  const Tensor x = made(1);
  {
    const Tensor y = checkpoint(
        [&] { return keep_here([&] { return sin(checkpoint([&] { return tanh(checkpoint([&] { return sin(x); })); })); }); });
    backward(sum(y));
    EXPECT_TRUE(checkpoint([&] { return keep_here([&] { return x; }); }).defined());
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  const Tensor plain = made(1);
  backward(sum(sin(tanh(sin(plain)))));
  EXPECT_TRUE(bit_equal(x.grad(), plain.grad()));
}

}  // namespace
}  // namespace tapedeck::keep_here_test
