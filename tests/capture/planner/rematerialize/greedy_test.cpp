// Tests the greedy strategy: how low its peaks are and how much they cost. Its data structures are compared with simple
// models.
#include <tapedeck/tests/capture/planner_graphs.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/live_tree.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tapedeck {
namespace {

Plan plan_at(const Graph& graph, double percent, Strategy strategy = Strategy::greedy) {
  PlanOptions options;
  options.budget_percent = percent;
  options.strategy = strategy;
  options.ordering = Ordering::recorded;  // measure the strategy alone, without the search for orders
  options.alignment = 1;
  return make_plan(graph, options);
}

TEST(Greedy, ChainsOfADozenLayersFitInHalf) {
  const Plan plan = plan_at(test::chain(12, 1000), 50);
  EXPECT_TRUE(plan.feasible);
  EXPECT_LE(plan.floor_bytes * 2, plan.keep_all_peak_bytes);
  EXPECT_LE(plan.recompute_cost_ratio(), 1.48) << "one more forward pass at most";
}

TEST(Greedy, FloorOfAChainIsAFewActivations) {
  for (int layers : {12, 30, 60, 100}) {
    const Plan plan = plan_at(test::chain(layers, 1000), 0);
    EXPECT_FALSE(plan.feasible);
    EXPECT_LE(plan.floor_bytes - plan.external_bytes, 5000) << layers << " layers";
  }
}

TEST(Greedy, AQuarterOfMemoryForAboutOneMoreForward) {
  const Plan plan = plan_at(test::chain(100, 1000), 25);
  EXPECT_TRUE(plan.feasible);
  EXPECT_LE(plan.recompute_cost_ratio(), 1.6);
}

TEST(Greedy, ExpensiveValuesAreKept) {
  const Graph graph = parse(test::kCheapAndDear, "costs");
  const Plan plan = plan_at(graph, 85);
  ASSERT_TRUE(plan.feasible);
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.decisions[0].value, "cheap");
  EXPECT_EQ(plan.decisions[0].bytes, 1000);
  EXPECT_EQ(plan.decisions[0].clones, 1);
  EXPECT_EQ(plan.decisions[0].cost_us, 1.0);
}

// The points are ends of one sequence of decisions, each with fewer bytes alive.
TEST(Greedy, DecisionsOfASmallerBudgetBeginWithThoseOfALarger) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Graph graph = test::RandomProgram(seed, 80).graph();
    const Facts facts = collect_facts(graph);
    const Choices choices = strategy_entry("greedy").choose(facts, {});
    for (std::size_t i = 1; i < choices.points.size(); ++i) {
      const ChoicePoint &larger = choices.points[i - 1], &smaller = choices.points[i];
      ASSERT_LT(larger.decisions, smaller.decisions);
      EXPECT_LT(larger.journal, smaller.journal);
      EXPECT_LT(smaller.live_peak, larger.live_peak);
      EXPECT_EQ(choices.decisions.at(static_cast<std::size_t>(smaller.decisions) - 1).live_peak_bytes,
                facts.external_bytes + smaller.live_peak);
    }
  }
}

TEST(Greedy, EveryDecisionPays) {
  const Plan plan = plan_at(test::chain(40, 1000), 0);
  std::int64_t last = plan.keep_all_peak_bytes;
  for (const Decision& d : plan.decisions) {
    EXPECT_LE(d.live_peak_bytes, last);
    EXPECT_GT(d.bytes, 0);
    EXPECT_FALSE(d.reason.empty());
    last = d.live_peak_bytes;
  }
  EXPECT_LT(last, plan.keep_all_peak_bytes / 4);
}

TEST(Greedy, NeverReadsStateAfterItsUpdate) {
  // %a could be computed again from %w, but at that time %w holds the value of the next step.
  const Graph graph = parse(R"(graph g(%x: f32[100]) state(%w: f32[100]) {
    %a: f32[100] = exp(%w)
    %w2: f32[100] = add(%w, %x)
    %b: f32[500] = opaque(%w2) {us=1.0}
    %c: f32[4] = opaque(%b) {us=1.0}
    %d: f32[4] = opaque(%c, %a) {us=1.0}
    return %d
    update %w = %w2
  })",
                            "state");
  for (double percent : {0, 50, 80, 90}) {
    const Plan plan = plan_at(graph, percent);
    EXPECT_TRUE(check_plan(plan).empty()) << check_plan(plan)[0] << print(plan.graph);
    EXPECT_EQ(plan.recomputed_nodes, 0);
  }
}

TEST(Greedy, RandomNodesReadTheSameStream) {
  const Graph graph = parse(R"(graph g(%x: f32[1000]) state(%rng: i64[2]) {
    %d: f32[1000] = dropout(%x, %rng) {p=0.5, path="drop"}
    %big: u8[9000] = opaque(%d) {us=1.0}
    %mid: u8[8] = opaque(%big) {us=1.0}
    %end: u8[8] = opaque(%mid, %d) {us=1.0} [phase=backward]
    %next: i64[2] = rng_next(%rng) [phase=update]
    return %end
    update %rng = %next
  })",
                            "dropout");
  const Plan plan = plan_at(graph, 0);
  EXPECT_TRUE(check_plan(plan).empty());
  EXPECT_TRUE(check_clones(plan).empty());
  for (const Node& node : plan.graph.nodes)
    EXPECT_TRUE(std::string(node.op->name) != "dropout" || plan.graph.is_state(plan.graph.inputs(node)[1]));
}

TEST(Greedy, ClonesRunJustInTime) {
  const Plan plan = plan_at(test::chain(12, 1000), 50);
  ASSERT_GT(plan.recomputed_nodes, 0);
  for (NodeId n = 1; n < plan.graph.node_count(); ++n) {
    const Node& node = plan.graph.nodes[n];
    if (!node.origin.clone) continue;
    ASSERT_EQ(node.n_after, 1) << "an order edge keeps it from running early";
    NodeId before = n;  // the last node before the clones that stand together
    while (plan.graph.nodes[before].origin.clone) --before;
    EXPECT_EQ(plan.graph.values[plan.graph.after(node)[0]].node, before);
  }
}

// ---- LiveTree, compared with an array ----

TEST(LiveTree, MatchesAnArray) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const auto n = static_cast<NodeId>(1 + random() % 70);
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(n));
    for (auto& b : bytes) b = static_cast<std::int64_t>(random() % 10);
    LiveTree tree(bytes);
    for (int step = 0; step < 100; ++step) {
      const auto first = static_cast<NodeId>(random() % static_cast<unsigned>(n)),
                 last = static_cast<NodeId>(random() % static_cast<unsigned>(n));
      const auto delta = static_cast<std::int64_t>(random() % 9) - 4;
      tree.add(first, last, delta);
      for (NodeId i = first; i <= last; ++i) bytes[i] += delta;
      tree.add(last, 2 * delta);
      bytes[last] += 2 * delta;
      const auto peak = std::max_element(bytes.begin(), bytes.end());
      ASSERT_EQ(tree.peak().bytes, *peak) << "seed " << seed;
      ASSERT_EQ(tree.peak().stage, peak - bytes.begin());
      ASSERT_EQ(tree.peak().stages, std::count(bytes.begin(), bytes.end(), *peak));
      ASSERT_EQ(tree.at(first), bytes[first]);
      if (first <= last) {
        ASSERT_EQ(tree.most(first, last), *std::max_element(bytes.begin() + first, bytes.begin() + last + 1));
      }
    }
  }
}

// ---- Schedule: undoing every change restores the live bytes ----

TEST(Schedule, UndoRestoresLiveBytes) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed).graph(), &passes);
    if (graph.nodes.empty()) continue;
    const Facts facts = collect_facts(graph);
    const Choices choices = strategy_entry("greedy").choose(facts, {});
    Schedule schedule(facts);
    std::vector<std::int64_t> before;
    for (NodeId n = 0; n < graph.node_count(); ++n) before.push_back(schedule.live(n));
    for (const Step& step : choices.journal) {
      if (step.added)
        schedule.add_run(step.stage, step.node);
      else
        schedule.remove_run(step.stage, step.node);
    }
    schedule.refresh();
    schedule.undo_to(0);
    schedule.refresh();
    for (NodeId n = 0; n < graph.node_count(); ++n) ASSERT_EQ(schedule.live(n), before[n]) << "seed " << seed;
    EXPECT_EQ(schedule.clone_count(), 0);
  }
}

}  // namespace
}  // namespace tapedeck
