// Updates that run together on a device, shown on a fake one. The oracle for results is the executor on the CPU, which joins
// nothing.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

class UpdateGroups : public ::testing::Test {
 protected:
  ~UpdateGroups() override {
    for (const std::string& problem : fake->problems()) ADD_FAILURE() << problem;
  }

  // Both executors run the same steps; state and outputs must be equal after each.
  void check(const Plan& plan, const std::vector<Tensor>& state, int steps = 4) {
    const Graph& g = plan.graph;
    Executor cpu(plan, {}), device(plan, {.device = "cuda"});
    for (Executor* e : {&cpu, &device}) set_all(*e, stand_ins(g, 0, g.n_inputs, 0), state);
    for (int step = 0; step < steps; ++step) {
      for (Executor* e : {&cpu, &device}) e->run();
      const std::vector<Tensor> expected = cpu.outputs(), outputs = device.outputs();
      for (std::size_t k = 0; k < expected.size(); ++k)
        EXPECT_TRUE(bit_equal(outputs[k], expected[k])) << "output " << k << " of step " << step;
      for (const std::string& name : cpu.state_names())
        EXPECT_TRUE(bit_equal(device.state(name), cpu.state(name))) << name << " of step " << step;
    }
  }
  void check(const Plan& plan) { check(plan, stand_ins(plan.graph, plan.graph.n_inputs, plan.graph.n_state, 7)); }

  const std::shared_ptr<test::FakeRuntime> fake = std::make_shared<test::FakeRuntime>();
  const ScopedDevice scope{fake};
};

Plan plan_of(const char* text) { return make_plan(parse(text), {.strategy = Strategy::none}); }

TEST_F(UpdateGroups, UpdatesOfOneKindAreOneCall) {
  const Plan plan = plan_of(R"(graph step(%x: f32[5], %y: f32[3,2], %lr: f32[]) state(%a: f32[5], %b: f32[3,2], %c: f32[5]) {
    %a2: f32[5] = sgd(%a, %x, %lr) {weight_decay=0.1}
    %g: f32[3,2] = tanh(%y)
    %b2: f32[3,2] = sgd(%b, %g, %lr) {weight_decay=0.1}
    %c2: f32[5] = sgd(%c, %x, %lr)
    return %g
    update %a = %a2, %b = %b2, %c = %c2
  })");
  const DeviceSchedule schedule = device_schedule(plan);
  EXPECT_EQ(schedule.joined_updates, 2) << "the weight decay of the third is another";
  EXPECT_EQ(schedule.update_groups, 1);
  EXPECT_EQ(schedule.calls, 3) << "tanh, the group, the third update";
  check(plan);
}

// The second update takes the result of the first as its gradient.
TEST_F(UpdateGroups, AnUpdateThatReadsAnothersResultIsNotJoined) {
  const Plan plan = plan_of(R"(graph step(%x: f32[5], %lr: f32[]) state(%a: f32[5], %b: f32[5]) {
    %a2: f32[5] = sgd(%a, %x, %lr)
    %b2: f32[5] = sgd(%b, %a2, %lr)
    return %x
    update %a = %a2, %b = %b2
  })");
  EXPECT_EQ(device_schedule(plan).update_groups, 0);
  check(plan);
}

TEST_F(UpdateGroups, AnUpdateDoesNotPassAReaderOfItsResult) {
  const Plan plan = plan_of(R"(graph step(%x: f32[5], %lr: f32[]) state(%a: f32[5], %b: f32[5]) {
    %a2: f32[5] = sgd(%a, %x, %lr)
    %t: f32[5] = tanh(%a2)
    %b2: f32[5] = sgd(%b, %t, %lr)
    return %x
    update %a = %a2, %b = %b2
  })");
  EXPECT_EQ(device_schedule(plan).update_groups, 0);
  check(plan);
}

// The gradient of %a is not read after its update, so its bytes in the arena are those of the gradient of %b too.
TEST_F(UpdateGroups, AnUpdateIsNotJoinedAcrossAReuseOfItsBytes) {
  const Graph g = parse(R"(graph step(%x: f32[64], %y: f32[64], %lr: f32[]) state(%a: f32[64], %b: f32[64]) {
    %ga: f32[64] = tanh(%x)
    %a2: f32[64] = sgd(%a, %ga, %lr)
    %gb: f32[64] = exp(%y)
    %b2: f32[64] = sgd(%b, %gb, %lr)
    return %lr
    update %a = %a2, %b = %b2
  })");
  const Plan plan = make_plan(g, {.strategy = Strategy::none});
  const ValueId ga = g.nodes[0].first_output, gb = g.nodes[2].first_output;
  ASSERT_EQ(plan.values[ga].offset, plan.values[gb].offset) << "the plan was expected to use the bytes again";
  EXPECT_EQ(device_schedule(plan).update_groups, 0);
  check(plan);
}

// Nobody reads %d, so its bytes are those of %t too, which is written after it.
TEST_F(UpdateGroups, AnUpdateDoesNotPassAnotherWriterOfItsBytes) {
  const Graph g = parse(R"(graph step(%x: f32[64], %y: f32[64], %lr: f32[]) state(%b: f32[64], %c: f32[64]) {
    %d: f32[64], %m: f32[64] = sgd_momentum(%x, %y, %x, %lr)
    %t: f32[64] = tanh(%x)
    %b2: f32[64], %c2: f32[64] = sgd_momentum(%b, %y, %c, %lr)
    %u: f32[64] = exp(%t)
    %v: f32[64] = add(%u, %m)
    %s: f32[] = sum(%v) {axes=[0]}
    return %s
    update %b = %b2, %c = %c2
  })");
  const Plan plan = make_plan(g, {.strategy = Strategy::none});
  const Placement &d = plan.values[g.nodes[0].first_output], &t = plan.values[g.nodes[1].first_output];
  ASSERT_TRUE(d.where == Where::arena && t.where == Where::arena);
  ASSERT_EQ(d.offset, t.offset) << "the plan was expected to use the bytes again";
  EXPECT_EQ(device_schedule(plan).update_groups, 0);
  check(plan);
}

TEST_F(UpdateGroups, ANodeOnTheHostEndsAGroup) {
  fake->missing = {"tanh"};
  const Plan plan = plan_of(R"(graph step(%x: f32[5], %lr: f32[]) state(%a: f32[5], %b: f32[5], %c: f32[5]) {
    %a2: f32[5] = sgd(%a, %x, %lr)
    %t: f32[5] = tanh(%x)
    %b2: f32[5] = sgd(%b, %x, %lr)
    %c2: f32[5] = sgd(%c, %x, %lr)
    return %t
    update %a = %a2, %b = %b2, %c = %c2
  })");
  const DeviceSchedule schedule = device_schedule(plan);
  EXPECT_EQ(schedule.joined_updates, 2);
  EXPECT_EQ(schedule.graphs, 2);
  check(plan);
}

TEST_F(UpdateGroups, SegmentsAndWritersOfStateAreThoseOfTheNewProgram) {
  const Plan plan = make_plan(parse(R"(graph step(%x: f32[5], %lr: f32[]) state(%a: f32[5], %b: f32[5]) {
    %a2: f32[5] = sgd(%a, %x, %lr)
    %t: f32[5] = tanh(%x)
    %b2: f32[5] = sgd(%b, %x, %lr)
    %u: f32[5] = exp(%t)
    return %u
    update %a = %a2, %b = %b2
  })"),
                              {.strategy = Strategy::none, .segment_us = 1e-6});
  const replay::BufferTable buffers(plan);
  const replay::Program program(plan, buffers, fake.get());
  std::int32_t next = 0;
  for (const replay::IndexRange& segment : program.segments) {
    EXPECT_EQ(segment.first, next);
    next = segment.end;
  }
  EXPECT_EQ(next, static_cast<std::int32_t>(program.instructions.size()));
  std::vector<std::int32_t> writers;
  for (std::int32_t i = 0; i < next; ++i)
    if (program.instructions[i].joined == 2) writers.push_back(i);
  EXPECT_EQ(writers.size(), 1u);
  EXPECT_EQ(program.state_writers, writers);
}

class ModelWithGroups : public UpdateGroups, public ::testing::WithParamInterface<const char*> {};

TEST_P(ModelWithGroups, HasTheBitsOfTheCpuUnderABudgetToo) {
  const Model& model = *find_model(GetParam());
  ModelOptions options = small_options(model);
  options.layers = std::min<std::int64_t>(options.layers, 2);
  const Captured step = record_model(model, options);
  std::vector<Tensor> state;
  for (const Tensor& t : step.state) state.push_back(t.detach());
  const Plan all = make_plan(step.graph, {.strategy = Strategy::none});
  const Plan tight = make_plan(step.graph, {.budget = std::max(all.floor_bytes, all.external_bytes + all.arena_bytes / 2)});
  EXPECT_GT(device_schedule(all).joined_updates, 1);
  for (const Plan* plan : {&all, &tight}) {
    if (!plan->feasible) continue;
    const DeviceSchedule schedule = device_schedule(*plan);
    RecordProperty(plan == &all ? "joined" : "joined_under_budget",
                   std::to_string(schedule.joined_updates) + " as " + std::to_string(schedule.update_groups));
    check(*plan, state, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelWithGroups, ::testing::Values("mlp", "resnet18", "lstm_lm"),
                         [](const auto& info) { return std::string(info.param); });

class RandomWithGroups : public UpdateGroups, public ::testing::WithParamInterface<int> {};

// Random updates of few, overlapping values: state is read before and after its update, and arenas are small.
TEST_P(RandomWithGroups, HasTheBitsOfTheCpu) {
  test::Dice dice{0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(GetParam() + 1)};
  std::string text =
      "graph step(%x: f32[6], %lr: f32[]) state(%s0: f32[6], %s1: f32[6], %s2: f32[6], %s3: f32[6], %s4: f32[6]) {\n";
  std::vector<std::string> values = {"x", "s0", "s1", "s2", "s3", "s4"};
  std::string updates;
  int slot = 0;
  for (int k = 0; slot < 5; ++k) {
    const std::string name = "v" + std::to_string(k), from = "%" + dice.pick(values);
    if (dice.below(2) == 0) {
      text += "  %" + name + ": f32[6] = sgd(%s" + std::to_string(slot) + ", " + from + ", %lr)\n";
      updates += (slot ? ", %s" : "%s") + std::to_string(slot) + " = %" + name;
      ++slot;
    } else {
      text += "  %" + name + ": f32[6] = tanh(" + from + ")\n";
    }
    values.push_back(name);
  }
  text += "  return %" + values.back() + "\n  update " + updates + "\n}";
  SCOPED_TRACE(text);
  check(plan_of(text.c_str()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWithGroups, ::testing::Range(0, 60));

}  // namespace
}  // namespace tapedeck
