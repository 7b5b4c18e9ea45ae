// Replays of the zoo's training steps on a GPU. Graphs must give the bits of the same kernels called one by one, step after
// step; both must be near the CPU; memory on the device must be as planned and stay so. With TAPEDECK_GPU_STAND_IN=host a fake
// device takes the place of the GPU (tests/capture/replay/device/fake_runtime.h).
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/gpu/harness/device_step.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::gpu {
namespace {

class ZooStepGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (stand_in()) scope_.emplace(fake_ = std::make_shared<test::FakeRuntime>());
  }
  void TearDown() override {
    if (!fake_) return;
    for (const std::string& problem : fake_->problems()) ADD_FAILURE() << problem;
  }
  int steps(int on_gpu) const { return fake_ ? std::min(on_gpu, 4) : on_gpu; }

 private:
  std::shared_ptr<test::FakeRuntime> fake_;
  std::optional<ScopedDevice> scope_;
};

// A training step of the zoo at small sizes. Plain SGD: the first steps of AdamW divide noise by noise.
struct ZooStep {
  ZooStep(const std::string& name, const char* dtype) {
    const Model& model = *find_model(name);
    ModelOptions options = small_options(model);
    options.dtype = dtype;
    if (std::find(model.options.begin(), model.options.end(), "optimizer") != model.options.end()) options.optimizer = "sgd";
    captured = record_model(model, options);
    for (const Tensor& t : captured.inputs) inputs.push_back(t.detach());
    for (const Tensor& t : captured.state) state.push_back(copy(t.detach()));
  }

  void give(Executor& e) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) e.set_input(static_cast<int>(i), inputs[i]);
    const std::vector<std::string> names = e.state_names();
    for (std::size_t s = 0; s < state.size(); ++s) e.set_state(names[s], state[s]);
  }

  Captured captured;
  std::vector<Tensor> inputs, state;
};

// As relative_distance(), for weights of up to 138 million numbers: in f32, without copies.
double f32_distance(const Tensor& a, const Tensor& b) {
  const Tensor f32_a = cast(a, DType::f32), f32_b = cast(b, DType::f32);
  const auto *x = static_cast<const float*>(f32_a.data()), *y = static_cast<const float*>(f32_b.data());
  double differences = 0, squares = 0;
  for (std::int64_t i = 0, n = f32_a.numel(); i < n; ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return 1e30;
    const double d = static_cast<double>(x[i]) - y[i];
    differences += d * d;
    squares += static_cast<double>(y[i]) * y[i];
  }
  return std::sqrt(differences) / std::max(std::sqrt(squares), 1e-6);
}

void expect_same_bits(const Executor& a, const Executor& b, const std::string& when) {
  const std::vector<Tensor> x = everything(a), y = everything(b);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(bit_equal(x[i], y[i])) << when << ", result " << i;
}

// ---- every model ----

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : all_models()) names.push_back(model.name);
  return names;
}

class ZooGpu : public ZooStepGpu, public ::testing::WithParamInterface<std::string> {};

TEST_P(ZooGpu, AStepIsOneGraphNearTheCpu) {
  if (stand_in() && GetParam() != "lenet" && GetParam() != "lstm_lm") GTEST_SKIP() << "takes seconds on the CPU";
  for (const char* dtype : {"f32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const ZooStep step(GetParam(), dtype);
    const Plan plan = make_device_plan(step.captured.graph, {.find_floor = false});
    for (const HostNode& node : device_schedule(plan).host_nodes)
      ADD_FAILURE() << plan.graph.node_text(node.node) << ": " << node.why;
    Executor on_gpu(plan, {.device = "cuda"}), on_cpu(plan);
    EXPECT_EQ(on_gpu.observed_peak_bytes(), planned_device_bytes(plan));
    step.give(on_gpu);
    step.give(on_cpu);
    const bool half = std::string(dtype) == "bf16";
    const Nearness nearness{&f32_distance, half ? 6e-2 : 2e-3, half ? 0x1p-11 : 0x1p-17};
    for (int i = 0; i < 3; ++i)  // kernel after kernel, captured, launched again
      run_near_the_cpu(on_gpu, on_cpu, nearness, "step " + std::to_string(i));
    EXPECT_EQ(on_gpu.device_counters().graph_launches, 2);
    EXPECT_EQ(on_gpu.device_counters().without_graphs, "");
    std::printf("%s %s: %lld nodes of a graph\n", GetParam().c_str(), dtype,
                static_cast<long long>(on_gpu.device_counters().graph_nodes));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ZooGpu, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return std::string(info.param); });

// ---- many steps ----

class ManyStepsGpu : public ZooStepGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(ManyStepsGpu, GraphsHaveTheBitsOfKernelAfterKernel) {
  const ZooStep step(GetParam(), "f32");
  const Plan plan = make_device_plan(step.captured.graph, {.find_floor = false});
  Executor graphs(plan, {.device = "cuda", .cuda_graphs = CudaGraphs::required});
  Executor calls(plan, {.device = "cuda", .cuda_graphs = CudaGraphs::off});
  step.give(graphs);
  step.give(calls);
  const int count = steps(1000);
  for (int i = 0; i < count; ++i) {
    graphs.run();
    calls.run();
    if (i < 3 || (i + 1) % 250 == 0) expect_same_bits(graphs, calls, "step " + std::to_string(i));
  }
  expect_same_bits(graphs, calls, "the last step");
  EXPECT_EQ(graphs.device_counters().captures, 1);
  EXPECT_EQ(graphs.device_counters().graph_launches, count - 1);
}

INSTANTIATE_TEST_SUITE_P(Models, ManyStepsGpu, ::testing::Values("mlp", "lenet", "lstm_lm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tapedeck::gpu
