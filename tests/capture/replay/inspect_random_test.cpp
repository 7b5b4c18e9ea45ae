// Looks at every value of random graphs in the middle of steps, goes back and on, and finishes the steps. The oracle is eager
// code. Each test covers 200 graphs, half of them under a budget.
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/tests/engine/messages.h>

#include <tapedeck/tests/capture/replay/random_plans.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

constexpr int kInspectGroup = 10;  // graphs in each test case

class InspectRandom : public ::testing::TestWithParam<int> {
 protected:
  // Calls f(seed, executor, all values by name) for each graph of the group, and compares the end of the step with eager code.
  template <class F>
  void each(F&& f) {
    for (int i = 0; i < kInspectGroup; ++i) {
      const auto seed = static_cast<std::uint64_t>(GetParam() * kInspectGroup + i);
      SCOPED_TRACE("seed " + std::to_string(seed));
      const Graph g = test::graph_of(seed);
      Executor e(test::plan_of(g, seed), {.threads = 1 + static_cast<int>(seed / 5 % 2)});
      const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
      set_all(e, inputs, state);
      const std::map<std::string, Tensor> wanted = test::all_values(e.plan().graph, inputs, state);
      f(seed, e, wanted);
      expect_equal(e, run_eagerly(g, inputs, state), "at the end");
      EXPECT_EQ(e.observed_peak_bytes(), e.plan().peak_bytes);
    }
  }
};

// By node number: whether it is among the first `count` nodes in the order of one thread.
std::vector<bool> first_nodes(const Plan& plan, std::int32_t count) {
  std::vector<bool> first(plan.graph.nodes.size());
  for (const Segment& segment : plan.segments)
    for (const NodeId n : segment.nodes)
      if (count-- > 0) first[n] = true;
  return first;
}

// Every value whose node has run, and no other, can be looked at.
void expect_all(const Executor& e, const std::map<std::string, Tensor>& wanted) {
  const Graph& g = e.plan().graph;
  const std::vector<bool> has_run = first_nodes(e.plan(), g.node_count() - e.nodes_left());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const std::string name = g.value_name(v);
    const NodeId maker = g.values[v].node;
    const bool computed = maker == kNone || has_run[maker];
    Inspected seen;
    try {
      seen = e.inspect(v);
    } catch (const ExecutionError& error) {
      EXPECT_FALSE(computed) << name << ": " << error.what();
      EXPECT_MENTIONS(std::string(error.what()), "is not there yet");
      continue;
    }
    EXPECT_TRUE(bit_equal(seen.value, wanted.at(name))) << name << ", " << seen.nodes << " nodes ran again";
    EXPECT_GE(seen.extra_bytes, seen.value.bytes());
    EXPECT_LE(seen.nodes, g.node_count() - e.nodes_left());
  }
}

TEST_P(InspectRandom, EveryValueIsThatOfEagerCode) {
  each([](std::uint64_t seed, Executor& e, const auto& wanted) {
    test::Dice dice{seed + 3};
    const std::int32_t all = e.plan().graph.node_count();
    e.keep_steps();
    if (all == 0) return e.run();
    for (std::int32_t left = all; left > 0;) {
      left = e.step(1 + static_cast<std::int32_t>(dice.below(all)));
      if (left > 0) expect_all(e, wanted);
    }
    for (const auto& [name, value] : wanted) EXPECT_TRUE(bit_equal(e.inspect(name).value, value)) << name << " at the end";
  });
}

// Goes to and fro. Neither the values on the way nor the end of the step may change.
TEST_P(InspectRandom, StepsGoBack) {
  each([](std::uint64_t seed, Executor& e, const auto& wanted) {
    test::Dice dice{seed + 5};
    const std::int32_t all = e.plan().graph.node_count();
    e.keep_steps();
    if (all == 0) return e.run();
    std::int32_t done = 0;
    for (int i = 0; i < 4; ++i) {
      const auto on = static_cast<std::int32_t>(dice.below(all)), back = static_cast<std::int32_t>(dice.below(all));
      done = std::min(done + on, all);
      EXPECT_EQ(e.step(on), all - done);
      if (done == all) break;
      done = std::max(done - back, 0);
      EXPECT_EQ(e.back(back), all - done);
      expect_all(e, wanted);
    }
    if (e.nodes_left() > 0) e.resume();
    if (dice.below(2) == 0) {
      EXPECT_EQ(e.back(all), all);
      e.resume();
    }
  });
}

// Without keep_steps() the values are the same, but for those that need overwritten state; and the error says so.
TEST_P(InspectRandom, AStepThatIsNotKeptSaysWhatIsMissing) {
  each([](std::uint64_t seed, Executor& e, const auto& wanted) {
    test::Dice dice{seed + 9};
    const std::int32_t all = e.plan().graph.node_count();
    if (all == 0) return e.run();
    if (e.step(1 + static_cast<std::int32_t>(dice.below(all))) > 0) e.step(static_cast<std::int32_t>(dice.below(3)));
    for (const auto& [name, value] : wanted) {
      try {
        EXPECT_TRUE(bit_equal(e.inspect(name).value, value)) << name;
      } catch (const ExecutionError& error) {
        const std::string text = error.what();
        const bool told = text.find("is not there yet") != text.npos || text.find("keep_steps()") != text.npos ||
                          text.find("has been computed in its bytes") != text.npos;
        EXPECT_TRUE(told) << text;
      }
    }
    EXPECT_MENTIONS(testing::message_of<ExecutionError>([&] { e.back(); }), "the step is not kept");
    if (e.nodes_left() > 0) e.resume();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, InspectRandom, ::testing::Range(0, test::seeds(200) / kInspectGroup));

}  // namespace
}  // namespace tapedeck
