// Tests that no strategy runs an effect twice, also where it lies inside a branch, and that the checker of clones sees it.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/solvers/integer_program.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

// %y is wide, kept across the peak, and cheap to make again, if its branch may run twice.
Graph branch_across_the_peak(const std::string& in_the_branch) {
  return parse("graph effects(%x: f32[1000], %p: bool[]) {\n  %y: f32[1000] = cond(%p, %x) (%a: f32[1000]) {\n" +
                   in_the_branch +
                   R"(
    %b: f32[1000] = exp(%a)
    return %b
  } (%a: f32[1000]) {
    return %a
  }
  %soon: f32[4] = opaque(%y) {us=1.0}
  %large: u8[90000] = opaque(%soon) {us=1.0}
  %mid: u8[8] = opaque(%large) {us=1.0}
  %end: f32[4] = opaque(%mid, %y) {us=1.0} [phase=backward]
  return %end, %soon
})",
               "effects");
}

constexpr const char* kEffectInside = "    %t: u8[0] = on_host(%a)";

Plan lowest_plan(const Graph& graph, const char* strategy) {
  PlanOptions options;
  options.budget_percent = 0;
  options.strategy = strategy_named(strategy);
  options.ordering = Ordering::recorded;
  return make_plan(graph, options);
}

TEST(Effects, AreNotRepeatedInsideABranchByAnyStrategy) {
  for (const StrategyEntry* s : all_strategies()) {
    if (s->check && !has_program_solver()) continue;
    const Plan plan = lowest_plan(branch_across_the_peak(kEffectInside), s->name);
    EXPECT_EQ(plan.recomputed_nodes, 0) << s->name << "\n" << print(plan.graph);
  }
  EXPECT_EQ(lowest_plan(branch_across_the_peak(""), "greedy").recomputed_nodes, 1) << "a branch without effects may run twice";
}

TEST(Effects, AClonedOneIsFoundByTheChecker) {
  Plan plan = lowest_plan(branch_across_the_peak(""), "greedy");
  ASSERT_EQ(check_clones(plan), std::vector<std::string>());
  const Region with_effect = branch_across_the_peak(kEffectInside).regions[0];
  for (Region& region : plan.graph.regions)
    if (region->node_count() > 0) region = with_effect;
  const std::vector<std::string> found = check_clones(plan);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("is no repetition of"), std::string::npos) << found[0];
}

}  // namespace
}  // namespace tapedeck
