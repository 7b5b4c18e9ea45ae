// Tests plans for a device: which nodes run where, and budgets that hold for all memory there. The memory that a fake device
// has given out is the judge of what an executor takes.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tapedeck {
namespace {

Graph step_of(const char* model, const char* dtype) {
  ModelOptions options = small_options(*find_model(model));
  options.dtype = dtype;
  options.abstract = true;
  return record_model(*find_model(model), options).graph;
}

// In bf16 the converted operands make scratch that no planner of the CPU counts.
TEST(DevicePlan, ABudgetHoldsForAllMemoryOnTheDevice) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  const ScopedDevice device(fake);
  for (const char* model : {"lenet"}) {
    const Graph g = step_of(model, "bf16");
    const Plan all = make_device_plan(g, {});
    ASSERT_TRUE(all.feasible);
    EXPECT_EQ(all.alignment, 256);
    EXPECT_GT(device_schedule(all).scratch_bytes, 0) << model;
    const std::int64_t overhead = planned_device_bytes(all) - all.peak_bytes;
    const std::int64_t budget = (all.peak_bytes + all.floor_bytes) / 2 + overhead;
    EXPECT_GT(overhead, 0) << model;
    const Plan tight = make_device_plan(g, {.budget = budget});
    ASSERT_TRUE(tight.feasible) << model << ": " << tight.infeasible_reason;
    EXPECT_TRUE(check_plan(tight).empty());
    EXPECT_EQ(tight.budget_bytes, budget) << model;
    EXPECT_TRUE(keeps_budget_on(tight)) << model;
    const Executor executor(tight, {.device = "cuda"});
    EXPECT_LE(fake->bytes_in_use(), budget) << model;
    EXPECT_EQ(fake->bytes_in_use(), planned_device_bytes(tight)) << model;
  }
}

TEST(DevicePlan, ABudgetInPercentLeavesScratchAside) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  const ScopedDevice device(fake);
  const Graph g = step_of("resnet18", "bf16");
  const PlanOptions percent = {.budget_percent = 95, .device = DeviceType::cuda};
  const Plan plan = make_device_plan(g, percent);
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  const Plan on_cpu = make_plan(g, percent);
  EXPECT_EQ(plan.peak_bytes, on_cpu.peak_bytes);
  EXPECT_GT(planned_device_bytes(plan), on_cpu.budget_bytes);
  EXPECT_EQ(plan.budget_bytes, on_cpu.budget_bytes + planned_device_bytes(plan) - plan.peak_bytes);
  EXPECT_TRUE(keeps_budget_on(plan));
  EXPECT_TRUE(check_plan(plan).empty());
}

// A plan whose budget leaves no room for scratch is one of the CPU.
TEST(DevicePlan, APlanOfTheCpuMayNotKeepItsBudgetOnADevice) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  const ScopedDevice device(fake);
  const Graph g = step_of("mlp", "bf16");
  const Plan all = make_plan(g, {.find_floor = false});
  EXPECT_TRUE(keeps_budget_on(all)) << "it has no budget";
  const Plan on_cpu = make_plan(g, {.budget = all.peak_bytes});
  ASSERT_TRUE(on_cpu.feasible);
  const Executor executor(on_cpu, {.device = "cuda"});
  EXPECT_GT(fake->bytes_in_use(), on_cpu.budget_bytes);
  EXPECT_FALSE(keeps_budget_on(on_cpu));
  EXPECT_EQ(device_overhead_bytes(on_cpu), fake->bytes_in_use() - on_cpu.peak_bytes);
}

TEST(DevicePlan, ABudgetThatOnlyScratchExceedsIsInfeasible) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  const ScopedDevice device(fake);
  const Graph g = step_of("mlp", "bf16");
  const Plan floor = make_plan(g, {});
  const Plan plan = make_device_plan(g, {.budget = floor.floor_bytes});
  EXPECT_FALSE(plan.feasible);
  EXPECT_FALSE(plan.infeasible_reason.empty());
}

TEST(DeviceSchedule, NamesNodesOfTheHostInTheirOrder) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  fake->missing = {"exp", "copy"};
  const ScopedDevice device(fake);
  const Plan plan = make_plan(parse(R"(graph g(%x: f32[2,3]) {
    %a: f32[2,3] = exp(%x)
    %b: f32[3,2] = transpose(%a) {axes=[1,0]}
    %c: f32[6] = reshape(%b) {shape=[6]}
    %d: f32[6] = tanh(%c)
    return %d
  })"));
  const DeviceSchedule schedule = device_schedule(plan);
  ASSERT_EQ(schedule.host_nodes.size(), 2u);
  EXPECT_EQ(plan.graph.nodes[schedule.host_nodes[0].node].op->name, std::string("exp"));
  EXPECT_EQ(plan.graph.nodes[schedule.host_nodes[1].node].op->name, std::string("reshape")) << "a view that must be copied";
  EXPECT_EQ(schedule.graphs, 1);
  EXPECT_EQ(schedule.calls, 1);
}

}  // namespace
}  // namespace tapedeck
