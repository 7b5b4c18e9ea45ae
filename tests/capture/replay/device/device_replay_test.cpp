// Steps on a device, shown on a fake one. The oracle for results is run_eagerly(), which knows no plan and no device; the fake
// notes what a real device would not allow.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay/device/device_replay.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using test::DeviceReplay;
using test::FakeRuntime;
using test::ints;
using test::kLookup;
using test::kSgdStep;
using test::longs;
using testing::message_of;

void check_steps_on_device(Executor& executor, const Graph& g, int steps = 4) {
  check_steps(executor, g, stand_ins(g, g.n_inputs, g.n_state, 7), steps, 2);
}

// ---- results equal those of run_eagerly ----

TEST_F(DeviceReplay, AStepEqualsEagerAndIsOneGraph) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  check_steps_on_device(e, g, 6);
  const DeviceCounters counters = e.device_counters();
  EXPECT_EQ(counters.steps, 6);
  EXPECT_EQ(counters.captures, 1);
  EXPECT_EQ(counters.instantiations, 1);
  EXPECT_EQ(counters.graph_launches, 5) << "all but the first step";
  EXPECT_EQ(counters.host_nodes, 0);
  EXPECT_EQ(counters.without_graphs, "");
}

TEST_F(DeviceReplay, StepsWithoutGraphsEqualEager) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g), CudaGraphs::off);
  check_steps_on_device(e, g);
  EXPECT_EQ(e.device_counters().graph_launches, 0);
  EXPECT_EQ(fake->counts.captures, 0);
}

class ZooOnDevice : public DeviceReplay, public ::testing::WithParamInterface<const char*> {};

// Half of the arena of a plan that keeps everything, as far as that goes.
Plan tight_plan(const Graph& g) {
  const Plan all = make_plan(g, {.strategy = Strategy::none});
  const Plan plan = make_plan(g, {.budget = std::max(all.floor_bytes, all.external_bytes + all.arena_bytes / 2)});
  return plan.feasible ? plan : all;
}

TEST_P(ZooOnDevice, EqualsEagerInABudgetAndInHalfPrecision) {
  const Model& model = *find_model(GetParam());
  for (const char* dtype : {"f32", "bf16"}) {
    if (model.name == "gpt2" && std::string(dtype) == "f32") continue;  // takes seconds, and halves have all of it
    SCOPED_TRACE(dtype);
    ModelOptions options = small_options(model);
    options.dtype = dtype;
    options.layers = std::min<std::int64_t>(options.layers, 1);
    const Captured step = record_model(model, options);
    std::vector<Tensor> state;
    for (const Tensor& t : step.state) state.push_back(t.detach());
    const bool is_half = options.dtype != "f32";
    for (const Plan& plan : {is_half ? make_plan(step.graph, {.find_floor = false}) : tight_plan(step.graph)}) {
      Executor e = executor(plan, CudaGraphs::required);
      EXPECT_EQ(fake->bytes_in_use(), planned_device_bytes(plan));
      EXPECT_EQ(e.observed_peak_bytes(), planned_device_bytes(plan));
      check_steps(e, step.graph, state, 3, 2);
      EXPECT_EQ(e.device_counters().graph_launches, 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ZooOnDevice, ::testing::Values("mlp", "lenet", "gpt2", "lstm_lm"),
                         [](const auto& info) { return std::string(info.param); });

class RandomOnDevice : public DeviceReplay, public ::testing::WithParamInterface<int> {};

TEST_P(RandomOnDevice, EqualsEagerWhateverThePlan) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const Graph g = test::RandomGraph(seed).make(5 + static_cast<int>(seed % 40));
  if (seed % 3 == 0) fake->missing = {"add", "matmul", "copy"};
  for (const Plan& plan : {make_plan(g, {.strategy = Strategy::none, .segment_us = 0.2}), tight_plan(g),
                           make_plan(g, {.chunk_bytes = 4096, .threads = 3, .segment_us = 0.2})}) {
    Executor e = executor(plan);
    check_steps_on_device(e, g, 4);
    EXPECT_EQ(fake->bytes_in_use(), planned_device_bytes(plan));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOnDevice, ::testing::Range(0, test::seeds(30)));

// ---- steady state ----

TEST_F(DeviceReplay, AThousandStepsAllocateNothingAndLaunchOneGraphEach) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  e.run();
  e.run();
  const FakeRuntime::Counts before = fake->counts;
  for (int i = 0; i < 1000; ++i) e.run();
  FakeRuntime::Counts expected = before;
  expected.launches += 1000;
  expected.synchronizations += 1000;
  expected.kernels += 1000 * (before.kernels / 2);
  EXPECT_EQ(fake->counts, expected) << "no allocation, no copy, no capture";
}

TEST_F(DeviceReplay, OnlyWhatChangedIsCopied) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  e.run();
  std::int64_t sent = e.device_counters().bytes_to_device;
  e.run();
  EXPECT_EQ(e.device_counters().bytes_to_device, sent);
  e.set_input("lr", full({}, 0.5));
  e.run();
  EXPECT_EQ(e.device_counters().bytes_to_device, sent += 4);
  e.set_state("b", full({5}, 0.25));
  e.run();
  EXPECT_EQ(e.device_counters().bytes_to_device, sent += 20);
  EXPECT_EQ(e.device_counters().bytes_to_host, 0) << "nobody has asked for a result";
  e.output("l");
  e.output("l");
  EXPECT_EQ(e.device_counters().bytes_to_host, 4);
  e.state("w");
  e.state("w");
  EXPECT_EQ(e.device_counters().bytes_to_host, 4 + 60);
}

// ---- state ----

TEST_F(DeviceReplay, StateThatIsReadSetAndReadAgainIsTheNewest) {
  const Graph g = parse(R"(graph count(%x: f32[2]) state(%s: f32[2], %k: f32[2]) {
    %t: f32[2] = add(%s, %x)
    return %s, %k
    update %s = %t
  })");
  Executor e = executor(make_plan(g));
  set_all(e, {full({2}, 1)}, {full({2}, 0), full({2}, 9)});
  const auto state = [&] { return e.state("s").to_vector<float>()[1]; };
  e.run();
  e.run();
  EXPECT_EQ(state(), 2);
  e.set_state("s", full({2}, 10));
  EXPECT_EQ(state(), 10) << "not what is on the device";
  e.run();
  EXPECT_EQ(state(), 11);
  EXPECT_EQ(e.outputs()[1].to_vector<float>()[0], 9);
  e.set_state("k", full({2}, 4));
  EXPECT_EQ(e.outputs()[1].to_vector<float>()[0], 9) << "the output of the step, kept before the state was set";
}

TEST_F(DeviceReplay, ABoundTensorHasTheNewBytesAndItsWritesAreSeen) {
  const Graph g = parse(R"(graph count(%x: f32[2]) state(%s: f32[2]) {
    %t: f32[2] = add(%s, %x)
    return %x
    update %s = %t
  })");
  Executor e = executor(make_plan(g));
  Tensor mine = full({2}, 5);
  e.set_input("x", full({2}, 1));
  e.bind_state("s", mine);
  e.run();
  EXPECT_EQ(mine.to_vector<float>()[0], 6);
  e.run();
  EXPECT_EQ(mine.to_vector<float>()[0], 7);
  mine += full({2}, 100);
  e.run();
  EXPECT_EQ(mine.to_vector<float>()[0], 108);
  EXPECT_EQ(e.state("s").to_vector<float>()[0], 108);
}

TEST_F(DeviceReplay, AllBoundTensorsComeBackWithOneWait) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  std::vector<Tensor> state = stand_ins(g, g.n_inputs, g.n_state, 7);
  const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) e.set_input(static_cast<int>(i), inputs[i]);
  Tensor w = stand_ins(g, g.n_inputs, g.n_state, 7)[0], b = stand_ins(g, g.n_inputs, g.n_state, 7)[1];
  e.bind_state("w", w);
  e.bind_state("b", b);
  for (int step = 0; step < 3; ++step) {
    const EagerResult eager = run_eagerly(g, inputs, state);
    const FakeRuntime::Counts before = fake->counts;
    e.run();
    EXPECT_TRUE(bit_equal(w, eager.state[0])) << step;
    EXPECT_TRUE(bit_equal(b, eager.state[1])) << step;
    EXPECT_EQ(fake->counts.downloads - before.downloads, 2) << step;
    if (step > 0) {
      EXPECT_EQ(fake->counts.synchronizations - before.synchronizations, 2) << "one for the step and one for its state";
    }
    state = eager.state;
  }
}

TEST_F(DeviceReplay, AValueOfTheArenaIsReadFromTheDevice) {
  const Graph g = parse(R"(graph values(%x: f32[2,3]) {
    %a: f32[2,3] = exp(%x)
    %b: f32[3,2] = transpose(%a) {axes=[1,0]}
    %c: f32[3,2] = tanh(%b)
    return %c
  })");
  Executor e = executor(make_plan(g));
  const Tensor x = stand_ins(g, 0, 1, 3)[0];
  e.set_input("x", x);
  e.run();
  const Tensor a = exp(x);
  EXPECT_TRUE(bit_equal(e.value("x"), x));
  try {
    EXPECT_TRUE(bit_equal(e.value("a"), a));
    EXPECT_TRUE(bit_equal(e.value("b"), contiguous(transpose(a, {1, 0}))));
  } catch (const ExecutionError& error) {  // another plan may compute %c in its bytes
    expect_mentions(error.what(), {"has been computed in its bytes"});
  }
}

// ---- nodes that run on the host ----

TEST_F(DeviceReplay, ANodeWithoutAKernelRunsOnTheHostBetweenTwoGraphs) {
  fake->missing = {"tanh"};
  const Graph g = parse(kSgdStep);
  const Plan plan = make_plan(g);
  const DeviceSchedule schedule = device_schedule(plan);
  ASSERT_EQ(schedule.host_nodes.size(), 1u);
  EXPECT_STREQ(plan.graph.nodes[schedule.host_nodes[0].node].op->name, "tanh");
  EXPECT_EQ(schedule.host_nodes[0].why, "the device has no kernel for the op");
  EXPECT_EQ(schedule.graphs, 2);
  Executor e = executor(plan);
  check_steps_on_device(e, g, 4);
  EXPECT_EQ(e.device_counters().host_nodes, 4);
  EXPECT_EQ(e.device_counters().graph_launches, 2 * 3);
  expect_mentions(message_of<UsageError>([&] { executor(plan, CudaGraphs::required); }),
                  {"not one CUDA graph", "tanh(%z)", "the device has no kernel for the op"});
}

TEST_F(DeviceReplay, ALoopRunsOnTheHost) {
  const Graph g = parse(R"(graph loop(%x: f32[3,2], %h: f32[2]) {
    %e: f32[2] = exp(%h)
    %y: f32[2], %all: f32[3,2] = scan(%e, %x) {carried=1, scanned=1} (%i: i64[], %c: f32[2], %s: f32[2]) {
      %n: f32[2] = add(%c, %s)
      return %n, %n
    }
    %z: f32[3,2] = tanh(%all)
    return %y, %z
  })");
  const Plan plan = make_plan(g);
  EXPECT_EQ(device_schedule(plan).host_nodes.at(0).why, "the host runs the passes of loops");
  Executor e = executor(plan);
  check_steps_on_device(e, g);
}

TEST_F(DeviceReplay, AHostCallSeesTheBytesOfTheDevice) {
  std::vector<float> seen;
  const Tensor three = full({2}, 3);
  Capture capture("look");
  const Tensor x = capture.input("x", three);
  const Tensor y = x + x;
  on_host(y, [&](const Tensor& t) { seen.push_back(t.to_vector<float>()[0]); });
  capture.output("z", y + 1);
  const Captured captured = capture.finish();
  const Plan plan = make_plan(captured.graph);
  EXPECT_EQ(device_schedule(plan).host_nodes.at(0).why, "it calls a function of the program");
  Executor e = executor(plan);
  e.set_input("x", full({2}, 4));
  seen.clear();
  for (int i = 0; i < 3; ++i) e.run();
  EXPECT_EQ(seen, (std::vector<float>{8, 8, 8}));
}

// ---- errors ----

// The first step, and a step by graphs.
TEST_F(DeviceReplay, AFaultOfAKernelNamesItsNodeAsOnTheCpu) {
  const Graph g = parse(kLookup);
  const Plan plan = make_plan(g);
  const auto give = [&](Executor& e, std::int64_t index) {
    set_all(e, {longs({0, index, 1}), ints({4, 4, 4}), ints({1, 2, 4})}, {full({5, 2}, 1), ints({0, 0, 0})});
  };
  Executor on_cpu(plan, {.threads = 1});
  give(on_cpu, 9);
  const std::string wanted = message_of<ExecutionError>([&] { on_cpu.run(); });
  expect_mentions(wanted, {"[embedding]", "index out of range: 9", "%e"});
  for (int good : {0, 1, 3}) {
    Executor e = executor(plan);
    give(e, 4);
    for (int i = 0; i < good; ++i) e.run();
    e.set_input("i", longs({0, 9, 1}));
    const std::string got = message_of<ExecutionError>([&] { e.run(); });
    EXPECT_EQ(got.substr(0, got.find(';')), wanted) << "after " << good << " steps";
    EXPECT_THROW(e.outputs(), ExecutionError);
    e.set_input("i", longs({0, 1, 2}));
    if (good == 0) {  // kernel after kernel: nothing was written behind the fault
      EXPECT_EQ(got.find("state had been written"), got.npos) << good;
    } else {
      expect_mentions(got, {"state had been written"});
      expect_mentions(message_of<ExecutionError>([&] { e.run(); }), {"still missing: n"});
      e.set_state("n", ints({0, 0, 0}));
    }
    e.run();
    EXPECT_EQ(e.state("n").to_vector<std::int32_t>()[0], 4);
  }
}

TEST_F(DeviceReplay, AFaultOnTheHostStopsTheStep) {
  fake->missing = {"div"};
  const Graph g = parse(kLookup);
  Executor e = executor(make_plan(g));
  set_all(e, {longs({0, 1, 2}), ints({4, 4, 4}), ints({1, 0, 4})}, {full({5, 2}, 1), ints({7, 7, 7})});
  expect_mentions(message_of<ExecutionError>([&] { e.run(); }), {"[div]", "integer division by zero", "%d"});
  EXPECT_EQ(e.state("n").to_vector<std::int32_t>()[0], 7) << "not torn: the state is written later";
  e.set_input("b", ints({1, 1, 1}));
  e.run();
  EXPECT_EQ(e.state("n").to_vector<std::int32_t>()[0], 11);
}

TEST_F(DeviceReplay, ACaptureThatFailsLeavesAnExecutorWithoutGraphs) {
  fake->refused_in_capture = "tanh";
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  ::testing::internal::CaptureStderr();
  check_steps_on_device(e, g, 5);
  const std::string said = ::testing::internal::GetCapturedStderr();
  expect_mentions(said, {"'step' runs without CUDA graphs", "this launch cannot be captured"});
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "said once";
  EXPECT_EQ(e.device_counters().failed_captures, 1);
  EXPECT_EQ(e.device_counters().graph_launches, 0);
  expect_mentions(e.device_counters().without_graphs, {"this launch cannot be captured"});

  Executor must = executor(make_plan(g), CudaGraphs::required);
  set_all(must, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  must.run();
  expect_mentions(message_of<ExecutionError>([&] { must.run(); }), {"cannot be captured as a CUDA graph"});
}

TEST_F(DeviceReplay, ADeviceThatIsLostNamesWhatRan) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  e.run();
  e.run();
  fake->breaks = "tanh";
  expect_mentions(message_of<ExecutionError>([&] { e.run(); }),
                  {"illegal memory access", "matmul(%x, %w)", "TAPEDECK_SYNC=1 finds the node", "must be set again"});
  expect_mentions(message_of<ExecutionError>([&] { e.state("w"); }), {"cannot be used any more", "illegal memory access"});
}

TEST_F(DeviceReplay, WaitingAfterEachNodeFindsTheNodeThatBreaksTheDevice) {
  Settings settings = tapedeck::settings();
  settings.sync = true;
  const ScopedSettings sync(settings);
  const Graph g = parse(kSgdStep);
  fake->breaks = "tanh";
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  const std::string message = message_of<ExecutionError>([&] { e.run(); });
  expect_mentions(message, {"[tanh]", "illegal memory access", "%y: f32[4,5] = tanh(%z)"});
  EXPECT_EQ(message.find("must be set again"), message.npos) << "no state had been written";
}

TEST_F(DeviceReplay, MemoryThatCannotBeHadIsNamed) {
  fake->capacity = 1000;
  const Graph g = parse(kSgdStep);
  expect_mentions(message_of<ExecutionError>([&] { executor(make_plan(g)); }),
                  {"cannot be had on the device", "out of memory"});
}

TEST_F(DeviceReplay, WhatADeviceDoesNotHaveIsRefused) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  const auto expect_refused = [](auto&& call) {
    expect_mentions(message_of<UsageError>(call), {"device 'cuda' runs whole steps only", "CPU"});
  };
  expect_refused([&] { e.step(); });
  expect_refused([&] { e.run(Phase::forward); });
  expect_refused([&] { e.run_to("y"); });
  expect_refused([&] { e.resume(); });
  expect_refused([&] { e.run_until({}); });
  expect_refused([&] { e.back(); });
  expect_refused([&] { e.inspect("y"); });
  expect_refused([&] { e.keep_steps(); });
  expect_refused([&] { e.monitor("*", [](const Monitored&) {}); });
  expect_refused([&] { e.reshape(std::map<std::string, Type>{}); });
  EXPECT_THROW(open_device("gpu"), UsageError);
  EXPECT_THROW(open_device("cuda:x"), UsageError);
}

TEST_F(DeviceReplay, ATimelineHasEveryCall) {
  const Graph g = parse(kSgdStep);
  Executor e = executor(make_plan(g));
  set_all(e, stand_ins(g, 0, g.n_inputs, 0), stand_ins(g, g.n_inputs, g.n_state, 7));
  Timeline timeline;
  for (int i = 0; i < 3; ++i) e.run(&timeline);
  ASSERT_EQ(static_cast<int>(timeline.slices.size()), device_schedule(e.plan()).calls);
  for (const Slice& slice : timeline.slices) {
    EXPECT_NE(slice.node, kNone);
    EXPECT_LE(slice.start_ns, slice.end_ns);
    EXPECT_LE(slice.end_ns, timeline.run_ns);
  }
}

}  // namespace
}  // namespace tapedeck
