// Replays on a GPU. The oracle is the same step on the CPU, within a tolerance for floating numbers, or the same step on the
// GPU in another way, bit for bit: without graphs, under a budget, in two threads.
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/gpu/harness/device_step.h>

#include <cmath>
#include <iostream>
#include <thread>

namespace tapedeck::gpu {
namespace {

struct ModelCase {
  const char* name;
  const char* model;
  ModelOptions options;
};

void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.name; }

const std::vector<ModelCase> kModels = {
    {"mlp", "mlp", {.batch = 32}},
    {"lenet", "lenet", {.batch = 8}},
    {"resnet18", "resnet18", {.batch = 4, .image = 32, .width = 16}},
    {"mobilenet_v2", "mobilenet_v2", {.batch = 2, .image = 64}},
    {"unet", "unet", {.batch = 1, .image = 32, .width = 8}},
    {"gpt2", "gpt2", {.batch = 2, .seq = 32, .layers = 2, .width = 128}},
    {"gpt2_bf16", "gpt2", {.batch = 2, .seq = 32, .layers = 2, .width = 128, .dtype = "bf16"}},
    {"resnet18_bf16", "resnet18", {.batch = 4, .image = 32, .width = 16, .dtype = "bf16"}},
    {"lstm_lm", "lstm_lm", {.batch = 4, .seq = 8, .width = 64}},
    {"gru_seq2seq_attention", "gru_seq2seq_attention", {.batch = 2, .seq = 6, .width = 64}},
};

class ModelsGpu : public ReplayTest, public ::testing::WithParamInterface<ModelCase> {
 protected:
  static Step step() { return record_step(GetParam().model, GetParam().options); }
};

TEST_P(ModelsGpu, FiveStepsAreNearTheCpus) {
  const Step s = step();
  Executor gpu = executor_on("cuda", s), cpu = executor_on("cpu", s);
  const bool half = GetParam().options.dtype == "bf16";
  const Nearness nearness{&relative_distance, half ? 0.1 : 2e-3, half ? 0x1p-11 : 0x1p-17};
  for (int i = 0; i < 5; ++i) {
    run_near_the_cpu(gpu, cpu, nearness, "step " + std::to_string(i));
    ASSERT_TRUE(std::isfinite(gpu.outputs()[0].item())) << "step " << i;
  }
  const DeviceCounters counters = gpu.device_counters();
  EXPECT_EQ(counters.host_nodes, 0);
  EXPECT_EQ(counters.without_graphs, "");
  EXPECT_GT(counters.graph_launches, 0);
  EXPECT_EQ(gpu.observed_peak_bytes(), planned_device_bytes(gpu.plan()));
}

TEST_P(ModelsGpu, GraphsChangeNoBit) {
  const Step s = step();
  Executor graphs = executor_on("cuda", s, {}, CudaGraphs::required), calls = executor_on("cuda", s, {}, CudaGraphs::off);
  for (int i = 0; i < 4; ++i) {
    graphs.run();
    calls.run();
    ASSERT_EQ(differing(calls, everything(graphs), everything(calls)), "") << "step " << i;
  }
  EXPECT_EQ(graphs.device_counters().graph_launches, 3);
  EXPECT_EQ(calls.device_counters().graph_launches, 0);
}

INSTANTIATE_TEST_SUITE_P(Model, ModelsGpu, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

// A budget that leaves the given share of the arena of a plan that keeps everything.
PlanOptions tight_options(const Graph& g, double share) {
  const Plan all = make_device_plan(g, {.strategy = Strategy::none, .find_floor = false});
  const auto saved = static_cast<std::int64_t>((1 - share) * static_cast<double>(all.arena_bytes));
  return {.budget = planned_device_bytes(all) - saved, .find_floor = false};
}

// Sizes at which values that backward reads are most of the arena.
class BudgetGpu : public ReplayTest, public ::testing::WithParamInterface<ModelCase> {};

TEST_P(BudgetGpu, ChangesNoBit) {
  const Step s = record_step(GetParam().model, GetParam().options);
  Executor free = executor_on("cuda", s);
  for (int i = 0; i < 3; ++i) free.run();
  const PlanOptions tight = tight_options(s.graph, 0.7);
  const Plan plan = make_device_plan(s.graph, tight);
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  Executor budgeted(plan, {.device = "cuda"});
  set_values(&budgeted, s);
  for (int i = 0; i < 3; ++i) budgeted.run();
  EXPECT_LE(budgeted.observed_peak_bytes(), tight.budget);
  EXPECT_LT(budgeted.observed_peak_bytes(), free.observed_peak_bytes());
  EXPECT_EQ(differing(free, everything(budgeted), everything(free)), "");
}

const std::vector<ModelCase> kBudgets = {
    {"cnn", "cnn", {.batch = 16}},
    {"resnet18", "resnet18", {.batch = 16, .image = 32, .width = 8}},
    {"cnn_bf16", "cnn", {.batch = 16, .dtype = "bf16"}},
};

INSTANTIATE_TEST_SUITE_P(Model, BudgetGpu, ::testing::ValuesIn(kBudgets),
                         [](const auto& info) { return std::string(info.param.name); });

class ReplayGpu : public ReplayTest {};

TEST_F(ReplayGpu, AThousandGraphsEqualAThousandStepsWithoutGraphs) {
  const Step s = record_step("mlp", {.batch = 32});
  Executor graphs = executor_on("cuda", s, {}, CudaGraphs::required), calls = executor_on("cuda", s, {}, CudaGraphs::off);
  for (int i = 0; i < steps(1000); ++i) {
    graphs.run();
    calls.run();
    if (i % 100 != 99) continue;
    ASSERT_EQ(differing(calls, everything(graphs), everything(calls)), "") << "step " << i;
  }
  EXPECT_EQ(differing(calls, everything(graphs), everything(calls)), "");
}

TEST_F(ReplayGpu, DropoutMasksEqualTheCpus) {
  manual_seed(7);
  next_step();
  const Tensor ones = full({1000, 37}, 1.0);
  Capture capture("masks");
  const Tensor x = capture.input("x", ones);
  capture.output("a", dropout(x, 0.1));
  capture.output("b", dropout(x, 0.5));
  const Step s = step_of(capture.finish());
  Executor gpu = executor_on("cuda", s), cpu = executor_on("cpu", s);
  for (int i = 0; i < 4; ++i) {
    gpu.run();
    cpu.run();
    EXPECT_EQ(differing(cpu, everything(gpu), everything(cpu)), "") << "step " << i;
  }
}

TEST_F(ReplayGpu, EveryStepSeesItsOwnInputs) {
  const Tensor zeros_x = full({3, 5}, 0.0), zeros_y = full({5}, 0.0);
  Capture capture("inputs");
  const Tensor x = capture.input("x", zeros_x), y = capture.input("y", zeros_y);
  capture.output("z", x * 2.0 + y);
  const Step s = step_of(capture.finish());
  Executor gpu = executor_on("cuda", s), cpu = executor_on("cpu", s);
  for (int i = 0; i < 6; ++i) {
    for (Executor* e : {&gpu, &cpu}) {
      e->set_input("x", full({3, 5}, i));
      if (i % 2 == 0) e->set_input("y", full({5}, 0.25 * i));
      e->run();
    }
    EXPECT_EQ(differing(cpu, everything(gpu), everything(cpu)), "") << "step " << i;
  }
}

// Bound state is read and written in place: a write of the caller between two steps is seen.
TEST_F(ReplayGpu, BoundStateIsTheCallersTensor) {
  const Step s = record_step("mlp", {.batch = 8});
  Executor gpu = executor_on("cuda", s), other = executor_on("cuda", s);
  const std::string name = gpu.state_names()[0];
  const Tensor mine = from_bytes(s.state[0].type(), s.state[0].data());
  gpu.bind_state(name, mine);
  for (int i = 0; i < 3; ++i) {
    gpu.run();
    other.run();
    EXPECT_TRUE(bit_equal(mine, other.state(name))) << "step " << i;
  }
}

TEST_F(ReplayGpu, AnIndexOutOfRangeNamesItsOp) {
  const Tensor words = full({5, 2}, 1.0), good = from_vector(std::vector<std::int32_t>{0, 1, 4}, {3});
  Capture capture("lookup");
  const Tensor table = capture.input("table", words), index = capture.input("index", good);
  capture.output("rows", embedding(table, index));
  const Step s = step_of(capture.finish());
  for (const int good_steps : {0, 3}) {  // the first step, and a step by a graph
    Executor gpu = executor_on("cuda", s);
    for (int i = 0; i < good_steps; ++i) gpu.run();
    gpu.set_input("index", from_vector(std::vector<std::int32_t>{0, 5, 4}, {3}));
    try {
      gpu.run();
      ADD_FAILURE() << "no error after " << good_steps << " steps";
    } catch (const ExecutionError& error) {
      EXPECT_NE(std::string(error.what()).find("embedding"), std::string::npos) << error.what();
    }
    gpu.set_input("index", good);
    gpu.run();
    EXPECT_EQ(gpu.outputs()[0].to_vector<float>()[0], 1.0f) << "the executor goes on";
  }
}

// The inputs change while the device has earlier steps in work.
TEST_F(ReplayGpu, LaunchedStepsEqualStepsThatAreWaitedFor) {
  const Step s = record_step("mlp", {.batch = 16});
  Executor launched = executor_on("cuda", s), waited = executor_on("cuda", s);
  const Type& type = s.graph.values[0].type;
  for (int step = 0; step < steps(200); ++step) {
    const Tensor x = default_value(type, static_cast<std::uint64_t>(step), "x");
    for (Executor* executor : {&launched, &waited}) executor->set_input(0, x);
    launched.launch();
    waited.run();
  }
  EXPECT_GT(launched.device_counters().steps_ahead, 0);
  for (std::size_t i = 0; i < s.graph.outputs.size(); ++i)
    EXPECT_TRUE(bit_equal(launched.outputs()[i], waited.outputs()[i])) << i;
  for (const std::string& name : launched.state_names())
    EXPECT_TRUE(bit_equal(launched.state(name), waited.state(name))) << name;
}

TEST_F(ReplayGpu, TwoThreadsCaptureAndReplayAtOnce) {
  if (stand_in()) GTEST_SKIP() << "the stand-in serves one thread";
  const Step s = record_step("mlp", {.batch = 16});
  std::vector<Tensor> results[2];
  std::vector<std::string> errors(2);
  const auto work = [&](std::size_t which) {
    try {
      Executor gpu = executor_on("cuda", s);
      for (int i = 0; i < 50; ++i) gpu.run();
      results[which] = everything(gpu);
    } catch (const std::exception& error) {
      errors[which] = error.what();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  ASSERT_EQ(errors, std::vector<std::string>(2));
  Executor alone = executor_on("cuda", s);
  for (int i = 0; i < 50; ++i) alone.run();
  for (const std::vector<Tensor>& got : results) EXPECT_EQ(differing(alone, got, everything(alone)), "");
}

// Runs while no other case does, because the free memory is that of the whole device.
class AloneReplayGpu : public ReplayTest {
 protected:
  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(runtime().memory_info(&free, &total), nullptr);
    return free;
  }
};

TEST_F(AloneReplayGpu, TenThousandReplaysTakeNoMemory) {
  const Step s = record_step("mlp", {.batch = 8});
  Executor gpu = executor_on("cuda", s, {}, CudaGraphs::required);
  for (int i = 0; i < 10; ++i) gpu.run();
  const std::size_t before = free_bytes();
  const DeviceCounters first = gpu.device_counters();
  for (int i = 0; i < steps(10000); ++i) gpu.run();
  EXPECT_EQ(free_bytes(), before);
  const DeviceCounters last = gpu.device_counters();
  EXPECT_EQ(last.captures, first.captures);
  EXPECT_EQ(last.instantiations, first.instantiations);
  EXPECT_EQ(last.allocated_bytes, first.allocated_bytes);
  EXPECT_EQ(last.bytes_to_device, first.bytes_to_device) << "nothing was set";
}

TEST_F(AloneReplayGpu, AnExecutorGivesItsMemoryBack) {
  const Step s = record_step("lenet", {.batch = 8});
  const auto run = [&] {
    Executor gpu = executor_on("cuda", s);
    for (int i = 0; i < 3; ++i) gpu.run();
  };
  run();  // the libraries and their handles stay
  const std::size_t before = free_bytes();
  for (int i = 0; i < 5; ++i) run();
  EXPECT_EQ(free_bytes(), before);
}

// A small step for compute-sanitizer.
class SanReplay : public ReplayTest {};

TEST_F(SanReplay, StepsOfTraining) {
  for (const char* model : {"mlp", "lenet"}) {
    const Step s = record_step(model, {.batch = 2});
    Executor gpu = executor_on("cuda", s);
    for (int i = 0; i < 3; ++i) gpu.run();
    EXPECT_TRUE(std::isfinite(gpu.outputs()[0].item())) << model;
  }
}

}  // namespace
}  // namespace tapedeck::gpu
