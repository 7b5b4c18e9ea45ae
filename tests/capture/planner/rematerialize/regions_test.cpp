// Tests the strategy `regions`: the user's checkpoint regions, which run again for backward; regions that feed each other.
//
// Behaviours of the founding system (SEEDS.md, A and AW), and the tests that show what holds here:
//
// | row | here | test |
// |---|---|---|
// | A1 | a region in a region is part of the outer one | Checkpoint.NestedRegionsJoin |
// | A1's -1 | a stretch inside a region whose values stay stored | Capture.KeepHereStaysOutOfTheRegion, KeepHere.* |
// | A2, A3, A8, AW1 | nodes carry the region as a note and are cloned: no record of positions, no second build | check_points |
// | A4 | without regions the strategy keeps all | Regions.WithoutRegionsItKeepsAll |
// | A5, A9 | a value that forward reads outside of its region stays stored | Plan.RegionsRunAgainOnce..., AW5_Without... |
// | A6, A7, A10 | readers of later phases read the clones | Regions.ReplaysHaveTheBitsOfEagerRuns |
// | A11 | a region runs again just before its first later reader | Plan.RegionsRunAgainOnceJustBefore... |
// | A12 | no clone without a reader | Regions.PointsAreExact... |
// | A13 | clones are marked, so that no pass merges them | check_clones() in check_points |
// | A14 | order edges come from the order of the plan | check_plan() in check_points |
// | AW2 | every result of a region counts | W2_ARegionWithTwoResults |
// | AW4 | a node without operands is run again like any other | Regions.AW4_ANodeWithoutOperandsRunsAgain |
// | AW5 | outputs run again for a budget, one region from another | Regions.AW5_* |
// | AW6 | the same draws | W3_DropoutInARegionDrawsTheSameMaskAgain |
// | AW6 | statistics updated once | NamedStrategies.BatchNormUpdatesItsStatisticsOnce |
// | AW7 | a region that reads nothing is not skipped | Regions.AW4_ANodeWithoutOperandsRunsAgain |
// | AW8, AW9 | many regions of random programs | Regions.PointsAreExact... |
//
// Without a row: AW3, a slip in an array that has no counterpart here; the asserts of AW7.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

// `count` regions in a chain, each of `width` nodes. The last value of a region is its output. Backward reads all values in
// reverse.
Graph chain_of_regions(int count, int width) {
  const auto name = [&](int i) { return i == 0 ? std::string("%x") : fmt::format("%v{}", i); };
  const int all = count * width;
  std::string text = "graph regions(%x: f32[16,16]) {\n";
  for (int i = 1; i <= all; ++i)
    text += fmt::format("  {}: f32[16,16] = {}({}) [region={}]\n", name(i), i % 2 ? "tanh" : "sigmoid", name(i - 1),
                        (i - 1) / width);
  text += fmt::format("  %g{}: f32[16,16] = neg({}) [phase=backward]\n", all, name(all));
  for (int i = all; i >= 1; --i)
    text += fmt::format("  %g{}: f32[16,16] = mul(%g{}, {}) [phase=backward]\n", i - 1, i, name(i));
  return parse(text + "  return %g0\n}\n", "regions");
}

PlanOptions regions_within(std::int64_t budget) {
  PlanOptions options;
  options.strategy = strategy_named("regions");
  options.ordering = Ordering::recorded;
  options.alignment = 1;
  options.budget = budget;
  return options;
}

TEST(Regions, PointsAreExactOnRandomProgramsAndTrainingSteps) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    test::expect_exact_points(test::RandomProgram(seed).graph(), "regions");
    test::expect_exact_points(test::random_training(seed, 1 + static_cast<int>(seed)), "regions");
    if (HasFatalFailure()) return;
  }
}

TEST(Regions, ReplaysHaveTheBitsOfEagerRuns) {
  int recomputed = test::expect_equal_replays(chain_of_regions(6, 3), "regions");
  for (unsigned seed = 1; seed < 12; seed += 2)
    recomputed += test::expect_equal_replays(test::random_training(seed, 20 + static_cast<int>(seed)), "regions");
  EXPECT_GT(recomputed, 0) << "some replays ran clones";
}

// A4
TEST(Regions, WithoutRegionsItKeepsAll) {
  const test::Chosen c(test::chain(6, 100), "regions");
  EXPECT_TRUE(c.choices.journal.empty());
  EXPECT_EQ(c.last_peak(), c.keep_all_peak());
}

// AW4, AW7: the founding system skips such a region without a word.
TEST(Regions, AW4_ANodeWithoutOperandsRunsAgain) {
  const Graph graph = parse(R"(graph g() {
    %a: u8[100] = opaque() {us=1.0} [region=0]
    %b: u8[100] = opaque(%a) {us=1.0} [region=0]
    %c: u8[100] = opaque(%b) {us=1.0}
    %d: u8[100] = opaque(%c) {us=1.0} [phase=backward]
    %e: u8[100] = opaque(%d, %a) {us=1.0} [phase=backward]
    return %e
  })",
                            "no operands");
  const Plan plan = make_plan(graph, regions_within(-1));
  ASSERT_EQ(plan.recomputed_nodes, 1) << print(plan.graph);
  const auto clone = [](const Node& n) { return n.origin.clone; };
  const auto it = std::find_if(plan.graph.nodes.begin(), plan.graph.nodes.end(), clone);
  ASSERT_NE(it, plan.graph.nodes.end());
  EXPECT_EQ(it->origin.of.str(), "a");
  EXPECT_TRUE(plan.graph.inputs(*it).empty());
}

// AW5: with many small regions most bytes are outputs. A budget has them run again too, one from the other.
TEST(Regions, AW5_OutputsRunAgainForABudget) {
  const test::Chosen c(chain_of_regions(16, 2), "regions");
  ASSERT_GT(c.choices.points.size(), 2u);
  const std::int64_t regions_alone = c.choices.points[1].live_peak;
  EXPECT_GE(regions_alone, 16 * 1024) << "the outputs of all regions are kept";
  EXPECT_LT(c.last_peak() * 10, regions_alone * 7);
  for (std::size_t i = 2; i < c.choices.points.size(); ++i) {
    EXPECT_TRUE(c.choices.points[i].for_budget);
    EXPECT_LT(c.choices.points[i].live_peak, c.choices.points[i - 1].live_peak) << "no choice raises the peak";
    EXPECT_GT(c.cost_at(c.choices.points[i]), c.cost_at(c.choices.points[i - 1]));
  }
}

TEST(Regions, AW5_ACloneOfARegionReadsTheCloneOfAnother) {
  const test::Chosen c(chain_of_regions(16, 2), "regions");
  const Graph last = c.graph_at(c.choices.points.back()).graph;
  int fed = 0;
  for (const Node& node : last.nodes)
    for (ValueId v : last.inputs(node)) {
      const NodeId maker = last.values[v].node;
      if (maker == kNone || !node.origin.clone) continue;
      const Origin& from = last.nodes[maker].origin;
      fed += from.clone && from.region != node.origin.region;
    }
  EXPECT_GT(fed, 0) << print(last);
}

// Without a budget the plan takes the regions alone: it runs each node once more at most.
TEST(Regions, AW5_WithoutABudgetOutputsStayStored) {
  const Graph graph = chain_of_regions(16, 2);
  const Plan plan = make_plan(graph, regions_within(-1));
  EXPECT_EQ(plan.recomputed_nodes, 15) << "the last region runs just before backward, so it runs once\n" << print(plan.graph);
  for (const Node& node : plan.graph.nodes)
    EXPECT_TRUE(!node.origin.clone || std::stoi(node.origin.of.str().substr(1)) % 2 == 1) << "an output ran again";
}

TEST(Regions, AW5_TheBudgetHoldsInAReplay) {
  const Graph graph = chain_of_regions(16, 2);
  const Plan alone = make_plan(graph, regions_within(-1));
  const Plan plan = make_plan(graph, regions_within(alone.peak_bytes * 4 / 5));
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_EQ(plan.strategy, "regions");
  EXPECT_GT(plan.recomputed_nodes, alone.recomputed_nodes);
  EXPECT_LE(plan.peak_bytes, plan.budget_bytes);
  test::expect_equal_steps(graph, plan);
}

TEST(Regions, AW5_ABudgetThatCannotBeMetIsAnsweredWithTheLowestPeak) {
  const Graph graph = chain_of_regions(16, 2);
  const Plan none = make_plan(graph, regions_within(0));
  EXPECT_FALSE(none.feasible);
  const Plan enough = make_plan(graph, regions_within(none.peak_bytes));
  EXPECT_TRUE(enough.feasible) << enough.infeasible_reason;
  EXPECT_FALSE(make_plan(graph, regions_within(none.peak_bytes - 1)).feasible);
}

// A node that no region contains runs once, whatever the budget.
TEST(Regions, NodesOutsideRunOnce) {
  std::string text = print(chain_of_regions(12, 2));
  const std::string mark = " [region=5]";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) text.erase(at, mark.size());
  const test::Chosen c(parse(text, "gap"), "regions");
  for (const ChoicePoint& point : c.choices.points)
    for (const Node& node : c.graph_at(point).graph.nodes) EXPECT_TRUE(!node.origin.clone || node.origin.region >= 0);
}

TEST(Regions, AW5_AnOutputThatTheUserKeepsStaysStored) {
  const Graph graph = chain_of_regions(16, 2);
  PlanOptions options = regions_within(0);
  options.wishes = {{WishKind::keep, "v*"}};
  EXPECT_EQ(make_plan(graph, options).recomputed_nodes, 0);
}

}  // namespace
}  // namespace tapedeck
