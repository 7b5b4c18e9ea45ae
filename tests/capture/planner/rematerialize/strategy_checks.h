// What must hold for the choices of every strategy: checks that a test asks of a graph and the name of a strategy.
#pragma once

#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::test {

// A prepared graph, its facts in recorded order, and what a strategy chooses there.
struct Chosen {
  PassRunner passes;
  Graph graph;
  Facts facts;
  Choices choices;
  Chosen(const Graph& captured, const char* strategy)
      : graph(prepare(captured, &passes)), facts(collect_facts(graph)), choices(strategy_entry(strategy).choose(facts, {})) {}
  Chosen(const Chosen&) = delete;

  ClonedGraph graph_at(const ChoicePoint& point) const {
    return clone_graph(facts, runs_after(facts, choices.journal, point.journal));
  }
  double cost_at(const ChoicePoint& point) const {
    return schedule_cost(facts, runs_after(facts, choices.journal, point.journal));
  }
  std::int64_t last_peak() const { return choices.points.back().live_peak; }
  std::int64_t keep_all_peak() const { return choices.points.front().live_peak; }
};

// A random training step that can be replayed: a forward part of cheap and costly nodes with random draws, views and skip
// connections, and a backward part that reads the values of forward in reverse, most of them once and some twice.
inline Graph random_training(unsigned seed, int layers) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto v = [](int i) { return i == 0 ? std::string("%x") : "%v" + std::to_string(i); };
  std::string text = "graph training(%x: f32[16,16]) state(%w: f32[16,16], %rng: i64[2] [role=rng]) {\n";
  for (int i = 1; i <= layers; ++i) {
    const int kind = pick(8);
    const std::string a = v(i - 1), b = v(pick(i)), name = v(i);
    std::string op = (pick(2) ? "tanh(" : "sigmoid(") + a + ")";
    if (kind < 2) op = "matmul(" + a + ", %w)";
    if (kind == 2) op = "mul(" + a + ", " + b + ")";
    if (kind == 3) op = "add(" + a + ", " + b + ")";
    if (kind == 4) op = "dropout(" + a + ", %rng) {p=0.25, path=\"d" + std::to_string(i) + "\"}";
    if (kind == 5) op = "transpose(" + a + ") {axes=[1,0]}";
    text +=
        "  " + name + ": f32[16,16] = " + op + (i % 7 < 5 && seed % 2 ? " [region=" + std::to_string(i / 7) + "]" : "") + "\n";
  }
  text += "  %g" + std::to_string(layers) + ": f32[16,16] = tanh(" + v(layers) + ") [phase=backward]\n";
  for (int i = layers; i >= 1; --i) {
    const std::string g = "%g" + std::to_string(i), other = pick(4) ? v(i) : v(pick(i + 1));
    text += "  %h" + std::to_string(i) + ": f32[16,16] = " + (pick(3) ? "mul(" : "matmul(") + g + ", " + other +
            ") [phase=backward]\n";
    text += "  %g" + std::to_string(i - 1) + ": f32[16,16] = tanh(%h" + std::to_string(i) + ") [phase=backward]\n";
  }
  return parse(text + "  %next: i64[2] = rng_next(%rng) [phase=update]\n  %w2: f32[16,16] = add(%w, %g0) [phase=update]\n" +
                   "  return %g0\n  update %w = %w2, %rng = %next\n}\n",
               "training");
}

inline std::vector<std::string> nodes_that_nobody_reads(const Graph& g) {
  std::vector<char> read(g.values.size(), 0);
  for (const Node& node : g.nodes)
    for (ValueId v : g.inputs(node)) read[v] = 1;
  for (ValueId v : g.outputs) read[v] = 1;
  for (const Update& u : g.updates) read[u.value] = 1;
  std::vector<std::string> found;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    bool any = g.literal(g.nodes[n]) || g.nodes[n].op->is(kEffect);
    for (std::int32_t i = 0; i < g.nodes[n].n_outputs; ++i) any = any || read[g.nodes[n].first_output + i];
    if (!any) found.push_back(g.node_text(n));
  }
  return found;
}

inline void check_points(Chosen& c) {
  PlanOptions options;
  options.alignment = 1;
  ASSERT_FALSE(c.choices.points.empty());
  EXPECT_EQ(c.choices.points.front().journal, 0u);
  double decided = c.facts.keep_all_cost;
  std::int32_t done = 0;
  for (const ChoicePoint& point : c.choices.points) {
    ASSERT_GE(point.decisions, done) << "points ascend in decisions";
    for (; done < point.decisions; ++done) decided += c.choices.decisions[done].cost_us;
    EXPECT_NEAR(c.cost_at(point), decided, 1e-9 * decided);
    const ClonedGraph cloned = c.graph_at(point);
    ASSERT_EQ(nodes_that_nobody_reads(cloned.graph), nodes_that_nobody_reads(c.graph)) << print(cloned.graph);
    const Plan plan = finish_plan(c.facts, cloned, 0, options, &c.passes);
    ASSERT_EQ(check_plan(plan), std::vector<std::string>()) << print(plan.graph);
    ASSERT_EQ(check_clones(plan), std::vector<std::string>()) << print(plan.graph);
    ASSERT_EQ(plan.lower_bound_bytes, c.graph.nodes.empty() ? plan.external_bytes : c.facts.external_bytes + point.live_peak)
        << print(plan.graph);
  }
  for (const Decision& d : c.choices.decisions) {
    EXPECT_FALSE(d.value.empty());
    EXPECT_GT(d.bytes, 0);
    EXPECT_FALSE(d.reason.empty());
  }
}

// At every point: the plan is sound, its live peak is the one that the strategy states, its cost is the sum of the decisions,
// and no node runs for nobody. Returns the number of decisions.
inline std::size_t expect_exact_points(const Graph& captured, const char* strategy) {
  Chosen c(captured, strategy);
  check_points(c);
  return c.choices.decisions.size();
}

// Two steps of the plan have the bits of eager runs, on one thread and on four, and the peak that was planned.
inline void expect_equal_steps(const Graph& captured, const Plan& plan) {
  for (const int threads : {1, 4}) {
    Executor executor(plan, {.threads = threads});
    std::vector<Tensor> state = stand_ins(captured, captured.n_inputs, captured.n_state, 7);
    set_all(executor, stand_ins(captured, 0, captured.n_inputs, 0), state);
    for (std::uint64_t step = 0; step < 2; ++step) {
      const std::vector<Tensor> inputs = stand_ins(captured, 0, captured.n_inputs, step);
      for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
      const EagerResult eager = run_eagerly(captured, inputs, state);
      executor.run();
      expect_equal(executor, eager, "threads " + std::to_string(threads) + ", step " + std::to_string(step));
      state = eager.state;
    }
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes) << "threads " << threads;
  }
}

// Replays at the strategy's middle and last point. Returns the number of clones in them.
inline int expect_equal_replays(const Graph& captured, const char* strategy) {
  Chosen c(captured, strategy);
  int clones = 0;
  for (const std::size_t i : {c.choices.points.size() / 2, c.choices.points.size() - 1}) {
    const Plan plan = finish_plan(c.facts, c.graph_at(c.choices.points[i]), 0, {}, &c.passes);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>()) << print(plan.graph);
    EXPECT_EQ(check_clones(plan), std::vector<std::string>()) << print(plan.graph);
    expect_equal_steps(captured, plan);
    clones += plan.recomputed_nodes;
  }
  return clones;
}

// A cancelled planning ends with Cancelled, if there is anything to choose.
inline void expect_cancellable(const Graph& captured, const char* strategy) {
  PassRunner passes;
  const Graph graph = prepare(captured, &passes);
  const Facts facts = collect_facts(graph);
  std::atomic<bool> cancel{true};
  EXPECT_THROW(strategy_entry(strategy).choose(facts, {&cancel, {}}), Cancelled) << strategy;
}

}  // namespace tapedeck::test
