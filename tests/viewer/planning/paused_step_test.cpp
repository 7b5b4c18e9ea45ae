// Tests the step that pauses, without a window: every value that has been computed is the one of eager code, wherever the step
// stands; a plan that cannot be replayed, pausing, and letting go in the middle.
#include <tapedeck/viewer/planning/paused_step.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/planning/replay_values.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tapedeck::viewer {
namespace {

// A step with values that are kept for backward, and a state that it overwrites.
std::string step_text() {
  std::string text = "graph step(%x: f32[16]) state(%w: f32[16]) {\n  %h0: f32[16] = mul(%x, %w)\n";
  constexpr int kLayers = 8;
  for (int i = 1; i <= kLayers; ++i) text += "  %h" + std::to_string(i) + ": f32[16] = tanh(%h" + std::to_string(i - 1) + ")\n";
  std::string gradient = "h8";
  for (int i = kLayers; i >= 1; --i) {
    const std::string next = "g" + std::to_string(i);
    text += "  %" + next + ": f32[16] = tanh_grad(%h" + std::to_string(i) + ", %" + gradient + ") [phase=backward]\n";
    gradient = next;
  }
  return text + "  %n: f32[16] = sub(%w, %" + gradient + ") [phase=update]\n  return %n\n  update %w = %n\n}\n";
}

std::shared_ptr<const PlanModel> planned() {
  return PlanModel::of(make_plan(parse(step_text()), {.budget_percent = 70, .ordering = Ordering::recorded}));
}

ValueId value_named(const Graph& g, const std::string& name) {
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (g.value_name(v) == name) return v;
  return kNone;
}

TEST(PausedStep, ShowsEveryValueWhereverItStands) {
  const auto model = planned();
  const Graph& g = model->graph();
  const ReplayValues values = replay_values("none.graph", g);
  PausedStep step([] {});
  step.begin(model, "none.graph", {});
  ASSERT_EQ(step.wait()->error, "");
  const Plan keeps_all = make_plan(parse(step_text()), {.strategy = Strategy::none});
  Executor oracle(keeps_all);
  set_values(&oracle, replay_values("none.graph", keeps_all.graph));
  for (NodeId n = 0; n < g.node_count(); ++n) {
    step.go({.move = StepMove::next});
    EXPECT_EQ(step.wait()->done, n + 1);
  }
  int gone = 0;
  for (int i = 0; i <= 8; ++i) {
    const std::string name = "h" + std::to_string(i);
    oracle.run_to(name);
    const TensorStatistics kept = statistics(oracle.value(name));
    step.go({.value = value_named(g, name)});
    const PausedStep::Result result = *step.wait();
    ASSERT_EQ(result.seen.error, "") << name;
    EXPECT_EQ(result.seen.statistics.mean, kept.mean) << name;
    EXPECT_EQ(result.seen.statistics.max, kept.max) << name;
    gone += result.seen.nodes_again > 0;
  }
  EXPECT_GT(gone, 0);
  step.go({.move = StepMove::to_node, .node = g.values[value_named(g, "h3")].node});
  EXPECT_EQ(step.wait()->behind, g.values[value_named(g, "h3")].node);  // it has gone back
  step.go({.value = value_named(g, "w")});
  EXPECT_EQ(step.wait()->seen.statistics.mean, statistics(values.state[0]).mean);  // the state has come back
}

TEST(PausedStep, SaysWhyThereIsNoStep) {
  PausedStep step([] {});
  step.begin(planned(), "/no/such/file.tape", {});
  const PausedStep::Result result = *step.wait();
  EXPECT_FALSE(result.begun);
  EXPECT_NE(result.error.find("/no/such/file.tape"), std::string::npos) << result.error;
}

TEST(PausedStep, IsLetGoInTheMiddle) {
  for (int round = 0; round < 20; ++round) {
    PausedStep step([] {});
    step.begin(planned(), "none.graph", {.move = StepMove::to_end});
    if (round % 2 == 0) step.pause();
    if (round % 3 == 0) step.end();
  }
}

}  // namespace
}  // namespace tapedeck::viewer
