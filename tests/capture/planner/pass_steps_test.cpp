// Tests that the steps from a captured graph to its plan are the passes of prepare(), with the graphs that these make.
#include <tapedeck/capture/analysis/live_peak.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/pass_steps.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/planner/graph_for_passes.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

using RecordedPasses = std::vector<std::pair<PassRecord, Graph>>;

RecordedPasses steps_of(const Graph& graph, OptimizationLevel level = OptimizationLevel::all) {
  RecordedPasses steps;
  watch_pass_steps(graph, level, Sharing::all, nullptr,
                   [&](const PassStep& step) { steps.emplace_back(step.record, step.graph); });
  return steps;
}

// The oracle runs each pass by its name on the graph of the step before.
TEST(PassSteps, EachIsItsPassOnTheGraphBefore) {
  const Graph captured = parse(test::kGraphForPasses);
  const RecordedPasses steps = steps_of(captured);
  EXPECT_EQ(steps.front().first.name, "captured");
  EXPECT_EQ(print(steps.front().second), print(captured));
  int passes = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto& [record, graph] = steps[i];
    EXPECT_EQ(record.nodes_before, steps[i - 1].second.node_count()) << record.name;
    EXPECT_EQ(record.nodes_after, graph.node_count()) << record.name;
    EXPECT_EQ(record.bytes_before, live_peak(steps[i - 1].second)) << record.name;
    EXPECT_EQ(record.bytes_after, live_peak(graph)) << record.name;
    EXPECT_NE(step_doc(record.name), step_doc("nobody")) << record.name;
    if (const Pass* pass = find_pass(record.name); pass != nullptr) {
      EXPECT_EQ(print(graph), print(run_pass(*pass, steps[i - 1].second))) << record.name;
      ++passes;
    }
  }
  EXPECT_GE(passes, 10);
  PassRunner runner;
  EXPECT_EQ(print(steps.back().second), print(prepare(captured, &runner)));
}

TEST(PassSteps, TheLastLeadsToThePlan) {
  const Graph captured = parse(test::kGraphForPasses);
  const Plan plan = make_plan(captured);
  const PassRecord last = steps_of(captured).back().first, planned = planned_step(last, plan);
  EXPECT_EQ(planned.name, "plan");
  EXPECT_EQ(planned.nodes_before, last.nodes_after);
  EXPECT_EQ(planned.nodes_after, plan.nodes);
  EXPECT_EQ(planned.bytes_after, live_peak(plan.graph));
}

TEST(PassSteps, ALowerLevelHasFewerSteps) {
  EXPECT_LT(steps_of(parse(test::kGraphForPasses), OptimizationLevel::none).size(),
            steps_of(parse(test::kGraphForPasses)).size());
}

TEST(PassSteps, AreCancelled) {
  const std::atomic<bool> cancel{true};
  int seen = 0;
  EXPECT_THROW(watch_pass_steps(parse(test::kGraphForPasses), OptimizationLevel::all, Sharing::all, &cancel,
                                [&](const PassStep&) { ++seen; }),
               Cancelled);
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace tapedeck
