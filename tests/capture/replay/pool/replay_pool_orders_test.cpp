// DW5 with different members: three members are made and run in every order, on one thread and on two. The state is the
// pool's own, or user's tensors that the first member binds. Poison makes bytes unreadable that one member leaves to
// another. The oracle is run_eagerly().
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

struct Part {
  const char* name;
  const char* text;
};

// Member 1 trains both weights, on two branches. Member 2 reads one weight and returns it. Member 3 updates the other weight
// from integers, and has state of its own.
constexpr Part kParts[] = {
    {"trains", R"(graph trains(%x: f32[5,16]) state(%w: f32[16,16], %b: f32[16]) {
      %h: f32[5,16] = matmul(%x, %w) [site="net.cpp:10"]
      %z: f32[5,16] = add(%h, %b)
      %y: f32[5,16] = tanh(%z)
      %e: f32[5,16] = exp(%h)
      %s: f32[16] = sum(%y) {axes=[0]}
      %t: f32[16] = sum(%e) {axes=[0]}
      %g: f32[16,16] = add(%w, %s)
      %k: f32[16,16] = tanh(%g)
      %c: f32[16] = sub(%b, %t)
      %d: f32[16] = tanh(%c)
      return %s, %e
      update %w = %k, %b = %d
    })"},
    {"encodes", R"(graph encodes(%x: f32[40,16]) state(%w: f32[16,16]) {
      %h: f32[40,16] = matmul(%x, %w) [site="net.cpp:11"]
      %r: f32[40,16] = relu(%h)
      %q: f32[40,16] = matmul(%r, %w)
      %a: f32[40,16] = tanh(%h)
      %m: f32[40,16] = mul(%q, %a)
      %v: f32[640] = reshape(%m) {shape=[640]}
      return %v, %w
    })"},
    {"counts", R"(graph counts(%x: f32[3,2,16]) state(%b: f32[16], %n: f32[2,16]) {
      %h: f32[3,2,16] = add(%x, %b) [site="net.cpp:12"]
      %s: f32[2,16] = sum(%h) {axes=[0]}
      %u: f32[2,16] = add(%n, %s)
      %o: f32[2,16] = tanh(%u)
      %l: f32[16] = sum(%o) {axes=[0]}
      %f: f32[16] = tanh(%l)
      return %o, %b
      update %n = %u, %b = %f
    })"},
};

struct Case {
  int threads;
  bool bound;
};

// A pool with its members, and the results and state that eager runs give.
class Round {
 public:
  Round(const std::vector<int>& order, Case how) : order_(order), how_(how), pool_(std::make_shared<ReplayPool>()) {
    for (const Part& part : kParts) graphs_.push_back(parse(part.text, part.name));
    for (const int i : order_) {
      PlanOptions options;
      options.threads = how.threads;
      options.segment_us = 0;
      members_.emplace(i, Executor(make_plan(graphs_[i], options), {.threads = how.threads, .pool = pool_}));
      inputs_[i] = default_value(graphs_[i].values[0].type, static_cast<std::uint64_t>(i) + 3, "x");
      members_.at(i).set_input("x", inputs_[i]);
    }
    for (const int i : order_)  // set each state through the first member that has it
      for (const std::string& name : members_.at(i).state_names()) set_state(i, name);
  }

  void run(int i) {
    const EagerResult eager = run_eagerly(graphs_[i], {inputs_[i]}, state_of(i));
    members_.at(i).run();
    expected_[i] = eager.outputs;
    const std::vector<std::string> names = members_.at(i).state_names();
    for (std::size_t s = 0; s < names.size(); ++s) state_[names[s]] = eager.state[s];
    check(i);
  }

 private:
  void set_state(int i, const std::string& name) {
    if (state_.contains(name)) return;
    const Graph& g = graphs_[i];
    for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
      if (g.value_name(v) == name) state_[name] = default_value(g.values[v].type, 9, name);
    if (!how_.bound) return members_.at(i).set_state(name, state_[name]);
    mine_[name] = from_bytes(state_[name].type(), state_[name].data());
    members_.at(i).bind_state(name, mine_[name]);
  }

  std::vector<Tensor> state_of(int i) {
    std::vector<Tensor> values;
    for (const std::string& name : members_.at(i).state_names()) values.push_back(state_.at(name));
    return values;
  }

  // Checks that each member's results are unchanged, that all members see one state, and that values overwritten by another
  // member are refused.
  void check(int ran) {
    for (const auto& [i, outputs] : expected_) {
      const std::vector<Tensor> got = members_.at(i).outputs();
      ASSERT_EQ(got.size(), outputs.size());
      for (std::size_t o = 0; o < got.size(); ++o)
        EXPECT_TRUE(bit_equal(got[o], outputs[o])) << kParts[i].name << " after " << kParts[ran].name << ", output " << o;
      if (i == ran) continue;
      const std::string gone = message_of<ExecutionError>([&, who = i] { members_.at(who).value("h"); });
      EXPECT_TRUE(mentions(gone, fmt::format("'{}', which shares its memory, has run since", kParts[ran].name))) << gone;
      EXPECT_TRUE(mentions(gone, fmt::format("net.cpp:{}", 10 + i))) << gone;
    }
    for (auto& [i, member] : members_)
      for (const std::string& name : member.state_names())
        EXPECT_TRUE(bit_equal(member.state(name), state_.at(name))) << name << " as " << kParts[i].name << " sees it";
    for (const auto& [name, tensor] : mine_) EXPECT_TRUE(bit_equal(tensor, state_.at(name))) << name << " of the user";
  }

  const std::vector<int> order_;
  const Case how_;
  const std::shared_ptr<ReplayPool> pool_;
  std::vector<Graph> graphs_;
  std::map<int, Executor> members_;
  std::map<int, Tensor> inputs_;
  std::map<std::string, Tensor> state_, mine_;  // the state that eager runs give; the user's tensors that are bound
  std::map<int, std::vector<Tensor>> expected_;
};

class ReplayPoolOrders : public ::testing::TestWithParam<Case> {};

TEST_P(ReplayPoolOrders, DW5_MakeAndRunInEveryOrder) {
  Settings poisoned = settings();
  poisoned.poison = 2;
  const ScopedSettings scope(poisoned);
  std::vector<int> made = {0, 1, 2};
  do {
    std::vector<int> run = {0, 1, 2};
    do {
      Round round(made, GetParam());
      for (int times = 0; times < 2; ++times)
        for (const int i : run) round.run(i);
      if (HasFailure())
        FAIL() << fmt::format("made in the order {}{}{}, run in the order {}{}{}", made[0], made[1], made[2], run[0], run[1],
                              run[2]);
    } while (std::next_permutation(run.begin(), run.end()));
  } while (std::next_permutation(made.begin(), made.end()));
}

INSTANTIATE_TEST_SUITE_P(StateAndThreads, ReplayPoolOrders,
                         ::testing::Values(Case{1, false}, Case{1, true}, Case{2, false}, Case{2, true}), [](const auto& info) {
                           return fmt::format("{}_threads_{}", info.param.threads, info.param.bound ? "bound" : "set");
                         });

}  // namespace
}  // namespace tapedeck
