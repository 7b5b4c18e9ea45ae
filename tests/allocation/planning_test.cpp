// For each call stack that allocates while a step is planned, one allocation fails. The same for the calls of a captured step,
// which record, plan and replay.
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/allocation/every_allocation.h>
#include <tapedeck/tests/allocation/training.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

using test::bits;
using test::fail_every_allocation;
using test::Training;

// A step of a small mlp. Under a budget some of its values are computed again.
Graph training_step() {
  return parse(R"(graph step(%x: f32[8,16], %y: i64[8], %lr: f32[]) state(%w: f32[16,10], %b: f32[10]) {
    %h: f32[8,10] = matmul(%x, %w)
    %z: f32[8,10] = add(%h, %b)
    %r: f32[8,10] = relu(%z)
    %e: f32[8,10] = exp(%r)
    %l: f32[] = cross_entropy(%e, %y)
    %p: f32[8,10] = softmax(%e) {axis=1}                [phase=backward]
    %q: f32[8,10] = mul(%p, %e)                         [phase=backward]
    %xt: f32[16,8] = transpose(%x) {axes=[1,0]}         [phase=backward]
    %gw: f32[16,10] = matmul(%xt, %q)                   [phase=backward]
    %gb: f32[10] = sum(%q) {axes=[0]}                   [phase=backward]
    %w2: f32[16,10] = sgd(%w, %gw, %lr)                 [phase=update]
    %b2: f32[10] = sgd(%b, %gb, %lr)                    [phase=update]
    return %l
    update %w = %w2, %b = %b2
  })");
}

std::string planned(const Graph& g, const PlanOptions& options) {
  const Plan plan = make_plan(g, options);
  return print(plan.graph) + std::to_string(plan.peak_bytes) + plan.infeasible_reason;
}

TEST(AllocationFails, WhileAStepIsPlanned) {
  const Graph g = training_step();
  fail_every_allocation({.name = "a plan", .once_per_stack = true}, [&] { return planned(g, {}); });
}

TEST(AllocationFails, WhileAStepIsPlannedUnderABudget) {
  const Graph g = training_step();
  fail_every_allocation({.name = "a plan under a budget", .once_per_stack = true},
                        [&] { return planned(g, {.budget_percent = 90}); });
}

CapturedStep captured(Training& training) {
  return capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{training.step(in[0], in[1])}; });
}

TEST(AllocationFails, InTheCallsOfACapturedStep) {
  Training training;
  training.step();
  training.save();
  fail_every_allocation({.name = "three calls of a captured step", .once_per_stack = true, .every = 5}, [&] {
    training.restore();
    CapturedStep step = captured(training);
    std::string text;
    for (int call = 0; call < 3; ++call) text += bits(step({training.x(), training.y()})[0]);
    return text + training.bits_of_state() + std::to_string(step.replays());
  });
}

// The step is kept. After a call that threw, it replays.
TEST(AllocationFails, InAReplayingCallOfACapturedStep) {
  Training training;
  training.step();
  training.save();
  CapturedStep step = captured(training);
  for (int call = 0; call < 3; ++call) step({training.x(), training.y()});
  const int recordings = step.recordings();
  fail_every_allocation({.name = "a call of a captured step that replays"}, [&] {
    training.restore();
    const std::string loss = bits(step({training.x(), training.y()})[0]);
    return loss + training.bits_of_state();
  });
  EXPECT_EQ(step.recordings(), recordings);
}

}  // namespace
}  // namespace tapedeck
