// Steps that are launched and waited for later. The fake device runs nothing before it is waited for, so a step whose inputs
// were overwritten too early gives wrong results. The oracle is an executor on the CPU, which waits for each step.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/replay/device/device_replay.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using test::FakeRuntime;
using test::ints;
using test::kLookup;
using test::kSgdStep;
using test::longs;
using testing::message_of;

class Launch : public test::DeviceReplay {
 protected:
  Launch() : graph(parse(kSgdStep)), plan(make_plan(graph)) {}

  void set_all_of(Executor& e) {
    set_all(e, stand_ins(graph, 0, graph.n_inputs, 0), stand_ins(graph, graph.n_inputs, graph.n_state, 7));
  }
  // An executor that has run two steps, so that its steps are graphs.
  Executor warm() {
    Executor e = executor(plan);
    set_all_of(e);
    e.run();
    e.run();
    return e;
  }
  // Sets other inputs in each step: both, one of them, or none.
  void give(Executor& e, int step) {
    const std::vector<Tensor> inputs = stand_ins(graph, 0, graph.n_inputs, static_cast<std::uint64_t>(100 + step));
    if (step % 4 != 3) e.set_input(0, inputs[0]);
    if (step % 2 == 0) e.set_input(1, inputs[1]);
  }
  void expect_same(const Executor& e, const Executor& other) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) EXPECT_TRUE(bit_equal(e.outputs()[i], other.outputs()[i])) << i;
    for (const std::string& name : e.state_names()) EXPECT_TRUE(bit_equal(e.state(name), other.state(name))) << name;
  }

  const Graph graph;
  const Plan plan;
};

TEST_F(Launch, ReturnsBeforeTheStepHasRun) {
  Executor e = warm();
  const FakeRuntime::Counts before = fake->counts;
  for (int step = 0; step < 10; ++step) e.launch();
  EXPECT_EQ(fake->counts.kernels, before.kernels);
  EXPECT_EQ(fake->counts.synchronizations, before.synchronizations);
  EXPECT_EQ(fake->counts.event_waits, before.event_waits);
  EXPECT_EQ(e.device_counters().steps, 2);
  e.synchronize();
  EXPECT_EQ(fake->counts.kernels, before.kernels + 10 * (before.kernels / 2));
  EXPECT_EQ(fake->counts.synchronizations, before.synchronizations + 1);
  EXPECT_EQ(e.device_counters().steps, 12);
  EXPECT_EQ(e.device_counters().steps_ahead, 10);
  e.synchronize();
  EXPECT_EQ(fake->counts.synchronizations, before.synchronizations + 1) << "nothing was launched since";
}

TEST_F(Launch, InputsOfManyStepsGoToTheStepThatTheyWereGivenFor) {
  Executor e = executor(plan), on_cpu(plan, {.threads = 1});
  set_all_of(e);
  set_all_of(on_cpu);
  for (int step = 0; step < 23; ++step) {
    give(e, step);
    give(on_cpu, step);
    e.launch();
    on_cpu.run();
    if (step % 7 == 6) expect_same(e, on_cpu);
  }
  expect_same(e, on_cpu);
  const DeviceCounters counters = e.device_counters();
  EXPECT_EQ(counters.steps, 23);
  EXPECT_EQ(counters.steps_ahead, 22) << "all but the first";
  EXPECT_GT(counters.input_waits, 0) << "the fake copies nothing before it is waited for";
  EXPECT_EQ(counters.captures, 1);
}

TEST_F(Launch, TheHostIsAtMostTwoStepsAheadOfTheInputs) {
  Executor e = warm();
  for (int step = 0; step < 2; ++step) {
    e.set_input(1, full({}, 0.5));
    e.launch();
    EXPECT_EQ(e.device_counters().input_waits, 0);
  }
  const std::int64_t kernels = fake->counts.kernels;
  e.set_input(1, full({}, 0.25));
  e.launch();
  EXPECT_EQ(e.device_counters().input_waits, 1) << "both halves of the staging memory were in use";
  EXPECT_EQ(fake->counts.kernels, kernels) << "the copy was waited for, not the step behind it";
  e.launch();
  EXPECT_EQ(e.device_counters().input_waits, 1) << "no new input";
  e.set_input(1, full({}, 0.125));
  e.launch();
  EXPECT_EQ(e.device_counters().input_waits, 2);
  EXPECT_GT(fake->counts.kernels, kernels);
}

TEST_F(Launch, EachCallThatReadsAResultWaits) {
  Executor e = warm(), on_cpu(plan, {.threads = 1});
  set_all_of(on_cpu);
  for (int i = 0; i < 3; ++i) on_cpu.run();
  e.launch();
  EXPECT_TRUE(bit_equal(e.output("l"), on_cpu.output("l")));
  e.launch(), on_cpu.run();
  EXPECT_TRUE(bit_equal(e.state("w"), on_cpu.state("w")));
  e.launch(), on_cpu.run();
  EXPECT_TRUE(bit_equal(e.outputs()[1], on_cpu.outputs()[1]));
  e.launch(), on_cpu.run();
  EXPECT_TRUE(bit_equal(e.value("l"), on_cpu.value("l")));
  e.launch(), on_cpu.run();
  EXPECT_TRUE(bit_equal(e.run_and_outputs()[0], on_cpu.run_and_outputs()[0]));
}

TEST_F(Launch, StateThatIsSetGoesToTheStepAfterIt) {
  Executor e = warm(), on_cpu(plan, {.threads = 1});
  set_all_of(on_cpu);
  on_cpu.run();
  on_cpu.run();
  for (int step = 0; step < 4; ++step) {
    const Tensor b = full({5}, 0.25 * step);
    e.set_state("b", b);
    e.launch();
    e.launch();
    on_cpu.set_state("b", b);
    on_cpu.run();
    on_cpu.run();
  }
  expect_same(e, on_cpu);
}

TEST_F(Launch, AnOutputThatIsAnInputStaysThatOfItsStep) {
  const Graph g = parse(R"(graph both(%x: f32[2]) {
    %y: f32[2] = exp(%x)
    return %x, %y
  })");
  Executor e = executor(make_plan(g));
  for (float x : {1.0f, 2.0f, 3.0f}) {
    e.set_input(0, full({2}, x));
    e.launch();
  }
  e.set_input(0, full({2}, 9.0));
  EXPECT_EQ(e.outputs()[0].to_vector<float>()[0], 3);
  EXPECT_TRUE(bit_equal(e.outputs()[1], exp(full({2}, 3.0))));
}

// ---- where each step is waited for ----

TEST_F(Launch, BoundStateIsUpToDateAtOnce) {
  Executor e = executor(plan);
  set_all_of(e);
  Tensor b = full({5}, 0.5);
  e.bind_state("b", b);
  Executor on_cpu(plan, {.threads = 1});
  set_all_of(on_cpu);
  on_cpu.set_state("b", b);
  for (int step = 0; step < 4; ++step) {
    e.launch();
    on_cpu.run();
    EXPECT_TRUE(bit_equal(b, on_cpu.state("b"))) << step;
  }
  EXPECT_EQ(e.device_counters().steps_ahead, 0);
}

TEST_F(Launch, StepsWithoutGraphsAndStepsWithNodesOnTheHostAreWaitedFor) {
  Executor without = executor(plan, CudaGraphs::off);
  fake->missing = {"tanh"};
  Executor with_host = executor(plan), on_cpu(plan, {.threads = 1});
  for (Executor* e : {&without, &with_host, &on_cpu}) {
    set_all_of(*e);
    for (int step = 0; step < 4; ++step) e->launch();
    EXPECT_EQ(e->device_counters().steps_ahead, 0);
    EXPECT_EQ(fake->waiting(), 0);
  }
  expect_same(without, on_cpu);
  expect_same(with_host, on_cpu);
}

TEST_F(Launch, ALaunchOnTheCpuIsARun) {
  Executor e(plan, {.threads = 1}), other(plan, {.threads = 1});
  set_all_of(e);
  set_all_of(other);
  e.launch();
  e.synchronize();
  other.run();
  expect_same(e, other);
}

// ---- errors ----

class LaunchFault : public test::DeviceReplay {
 protected:
  // The executor has run two good steps.
  LaunchFault() : e(executor(make_plan(parse(kLookup)))) {
    set_all(*e, {longs({0, 4, 1}), ints({4, 4, 4}), ints({1, 2, 4})}, {full({5, 2}, 1), ints({0, 0, 0})});
    e->run();
    e->run();
  }
  void expect_lost_step(const std::string& message) {
    expect_mentions(message, {"[embedding]", "index out of range: 9", "%e", "state had been written"});
    EXPECT_THROW(e->outputs(), ExecutionError);
    expect_mentions(message_of<ExecutionError>([&] { e->run(); }), {"still missing: n"});
    e->set_state("n", ints({0, 0, 0}));
    e->set_input("i", longs({0, 1, 2}));
    e->run();
    EXPECT_EQ(e->state("n").to_vector<std::int32_t>()[0], 4);
  }

  std::optional<Executor> e;
};

TEST_F(LaunchFault, IsThrownByTheNextWaitAndOnce) {
  e->set_input("i", longs({0, 9, 1}));
  e->launch();
  const std::string message = message_of<ExecutionError>([&] { e->synchronize(); });
  EXPECT_EQ(message.find("steps that were launched"), message.npos) << message;
  e->synchronize();
  expect_lost_step(message);
}

TEST_F(LaunchFault, OfOneOfSeveralStepsSaysSo) {
  e->launch();
  e->set_input("i", longs({0, 9, 1}));
  e->launch();
  e->set_input("i", longs({0, 1, 1}));
  e->launch();
  const std::string message = message_of<ExecutionError>([&] { e->output("e"); });
  expect_mentions(message, {"in one of 3 steps that were launched"});
  expect_lost_step(message);
}

TEST_F(LaunchFault, IsThrownBeforeAnotherStepRuns) {
  e->set_input("i", longs({0, 9, 1}));
  e->launch();
  e->set_input("i", longs({0, 1, 1}));
  const FakeRuntime::Counts before = fake->counts;
  const std::string message = message_of<ExecutionError>([&] { e->run(); });
  EXPECT_EQ(fake->counts.launches, before.launches);
  expect_lost_step(message);
}

TEST_F(LaunchFault, IsThrownBeforeStateIsSet) {
  e->set_input("i", longs({0, 9, 1}));
  e->launch();
  expect_lost_step(message_of<ExecutionError>([&] { e->set_state("n", ints({7, 7, 7})); }));
}

TEST_F(LaunchFault, OfTheDeviceIsThrownByTheNextWait) {
  fake->breaks = "div";
  e->launch();
  e->launch();
  expect_mentions(message_of<ExecutionError>([&] { e->synchronize(); }),
                  {"illegal memory access", "TAPEDECK_SYNC=1 finds the node", "in one of 2 steps", "must be set again"});
  expect_mentions(message_of<ExecutionError>([&] { e->state("n"); }), {"cannot be used any more"});
}

TEST_F(LaunchFault, GoesWithTheExecutorIfNobodyAsks) {
  e->set_input("i", longs({0, 9, 1}));
  e->launch();
  e.reset();
  EXPECT_EQ(fake->waiting(), 0);
}

}  // namespace
}  // namespace tapedeck
