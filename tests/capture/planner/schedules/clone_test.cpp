// Tests the clones that budgets cause: no clone without a reader, names that a file keeps, and costs that match the graph.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

// The nodes whose results are never read. Passes have removed such nodes from the captured graph before.
std::vector<std::string> unread_nodes(const Graph& g) {
  std::vector<char> wanted(g.values.size(), 0);
  for (const Node& node : g.nodes)
    for (ValueId v : g.inputs(node)) wanted[v] = 1;
  for (ValueId v : g.outputs) wanted[v] = 1;
  for (const Update& u : g.updates) wanted[u.value] = 1;
  std::vector<std::string> found;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    bool any = g.literal(node) || node.op->is(kEffect);
    for (std::int32_t i = 0; i < node.n_outputs; ++i) any = any || wanted[node.first_output + i];
    if (!any) found.push_back(g.node_text(n));
  }
  return found;
}

Plan plan_under(const Graph& graph, double percent, Strategy strategy, bool split_phases = false) {
  PlanOptions options;
  options.budget_percent = percent;
  options.strategy = strategy;
  options.split_phases = split_phases;
  return make_plan(graph, options);
}

class RandomBudgets : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomBudgets, NothingRunsForNobody) {
  for (unsigned k = 0; k < 10; ++k) {
    const unsigned seed = GetParam() * 10 + k;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = test::RandomProgram(seed).graph();
    for (const double percent : {95.0, 80.0, 60.0, 0.0}) {
      const Plan plan = plan_under(graph, percent, percent == 80 ? Strategy::regions : Strategy::greedy, seed % 2);
      ASSERT_EQ(unread_nodes(plan.graph), std::vector<std::string>()) << print(plan.graph);
      ASSERT_EQ(check_clones(plan), std::vector<std::string>()) << print(plan.graph);
    }
  }
}

// A plan read back from its file must pass the checker and the checker of clones.
TEST_P(RandomBudgets, SavedPlansVerify) {
  const TemporaryFolder folder;
  for (unsigned k = 0; k < 10; ++k) {
    const unsigned seed = 1000 + GetParam() * 10 + k;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TapeFile tape;
    tape.captured = test::RandomProgram(seed).graph();
    for (const double percent : {90.0, 70.0, 0.0}) {
      tape.plan = plan_under(tape.captured, percent, Strategy::greedy, k % 2);
      save_tape(folder.file("t.tape"), tape);
      const TapeFile back = load_tape(folder.file("t.tape"));
      ASSERT_EQ(check_plan(*back.plan), std::vector<std::string>()) << print(back.plan->graph);
      ASSERT_EQ(check_clones(*back.plan), std::vector<std::string>()) << print(back.plan->graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBudgets, ::testing::Range(0u, unsigned{test::seeds(12)}));

// Only the last node reads %late. So %late is computed once, just before the last node, and not at its recorded place.
constexpr const char* kWaiting = R"(graph g(%x: u8[100], %y: u8[100]) {
    %late: u8[5000] = opaque(%x) {us=7.0}
    %a: u8[9000] = opaque(%y) {us=1.0}
    %b: u8[100] = opaque(%a) {us=1.0}
    %c: u8[9000] = opaque(%b) {us=1.0}
    %d: u8[100] = opaque(%c) {us=1.0}
    %end: u8[100] = opaque(%late, %d) {us=1.0}
    return %end
  })";

TEST(Clones, WhatNobodyReadsBeforeItIsMadeAgainIsMadeOnce) {
  PlanOptions options;
  options.budget_percent = 0;
  options.ordering = Ordering::recorded;
  options.alignment = 1;
  const Plan plan = make_plan(parse(kWaiting, "waiting"), options);
  EXPECT_EQ(plan.recomputed_nodes, 0) << print(plan.graph);
  EXPECT_EQ(plan.cost_us, plan.keep_all_cost_us);
  EXPECT_EQ(plan.keep_all_peak_bytes - plan.external_bytes, 14100);
  EXPECT_EQ(plan.peak_bytes - plan.external_bytes, 9100);
  EXPECT_EQ(plan.graph.value_name(plan.graph.nodes[4].first_output), "late") << print(plan.graph);
}

// A window on a value that is computed later moves with this value and keeps no bytes alive until then.
TEST(Clones, WindowsGoWhereWhatTheyLookAtGoes) {
  const Graph graph = parse(R"(graph g(%x: f32[1000], %y: f32[1000]) {
    %late: f32[1000] = exp(%x)
    %shown: f32[10,100] = reshape(%late) {shape=[10,100]}
    %a: f32[1000] = sin(%y)
    %b: f32[1000,1000] = opaque(%a) {us=1.0}
    %c: f32[1000] = opaque(%b) {us=1.0}
    %d: f32[10,100] = reshape(%c) {shape=[10,100]}
    %end: f32[10,100] = mul(%shown, %d)
    return %end
  })",
                            "windows");
  PlanOptions options;
  options.budget_percent = 0;
  options.ordering = Ordering::recorded;
  const Plan plan = make_plan(graph, options);
  EXPECT_EQ(plan.recomputed_nodes, 0) << print(plan.graph);
  EXPECT_EQ(unread_nodes(plan.graph), std::vector<std::string>());
  EXPECT_EQ(plan.graph.value_name(plan.graph.nodes[0].first_output), "a") << print(plan.graph);
}

// The cost of a plan is the cost of the nodes that it runs. A larger budget never costs more.
TEST(Clones, CostIsThatOfTheNodesInTheGraph) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed).graph(), &passes);
    const Facts facts = collect_facts(graph);
    for (const Choices& choices : {strategy_entry("regions").choose(facts, {}), strategy_entry("greedy").choose(facts, {})}) {
      double decided = facts.keep_all_cost;
      std::int32_t done = 0, clones = 0;
      for (const ChoicePoint& point : choices.points) {
        const RunLists runs = runs_after(facts, choices.journal, point.journal);
        const ClonedGraph cloned = clone_graph(facts, runs);
        double us = 0;
        std::int32_t marked = 0;
        for (std::size_t n = 0; n < cloned.source.size(); ++n) {
          us += facts.cost[cloned.source[n]];
          marked += cloned.graph.nodes[n].origin.clone;
        }
        for (; done < point.decisions; ++done) {
          decided += choices.decisions[done].cost_us;
          clones += choices.decisions[done].clones;
        }
        const double cost = schedule_cost(facts, runs);
        ASSERT_NEAR(cost, us, 1e-9 * us);
        ASSERT_NEAR(cost, decided, 1e-9 * us);
        ASSERT_EQ(unread_nodes(cloned.graph), std::vector<std::string>()) << print(cloned.graph);
        ASSERT_EQ(marked, cloned.graph.node_count() - graph.node_count()) << print(cloned.graph);
        ASSERT_GE(marked, clones) << "windows are made again beside what was decided";
      }
    }
  }
}

}  // namespace
}  // namespace tapedeck
