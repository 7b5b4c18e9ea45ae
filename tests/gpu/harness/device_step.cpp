#include <tapedeck/tests/gpu/harness/device_step.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace tapedeck::gpu {
namespace {

std::shared_ptr<kernels::cuda::DeviceRuntime> fake_device() {
  static const auto fake = std::make_shared<test::FakeRuntime>();
  static const ScopedDevice scope(fake);  // "cuda" from now on
  return fake;
}

std::shared_ptr<kernels::cuda::DeviceRuntime> real_device() {
  std::string why;
  std::shared_ptr<kernels::cuda::DeviceRuntime> runtime = kernels::cuda::cuda_runtime(0, &why);
  if (!runtime) throw DeviceLost(why);
  return runtime;
}

}  // namespace

void ReplayTest::SetUp() {
  GpuTest::SetUp();
  if (stand_in()) fake_device();
}

kernels::cuda::DeviceRuntime& ReplayTest::runtime() {
  static const std::shared_ptr<kernels::cuda::DeviceRuntime> the_runtime = stand_in() ? fake_device() : real_device();
  return *the_runtime;
}

Step step_of(const Captured& captured) {
  Step step{captured.graph, {}, {}};
  for (const Tensor& t : captured.inputs) step.inputs.push_back(t.detach());
  for (const Tensor& t : captured.state) step.state.push_back(t.detach());
  return step;
}

Step record_step(const std::string& model, const ModelOptions& options) {
  return step_of(record_model(*find_model(model), options));
}

void set_values(Executor* executor, const Step& step) { set_all(*executor, step.inputs, step.state); }

Executor executor_on(const std::string& device, const Step& step, const PlanOptions& options, CudaGraphs graphs) {
  Plan plan = device == "cpu" ? make_plan(step.graph, options) : make_device_plan(step.graph, options, device);
  Executor executor(std::move(plan), {.device = device, .cuda_graphs = graphs});
  set_values(&executor, step);
  return executor;
}

std::vector<Tensor> everything(const Executor& executor) {
  std::vector<Tensor> all = executor.outputs();
  for (const std::string& name : executor.state_names()) all.push_back(executor.state(name));
  return all;
}

std::string differing(const Executor& executor, const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  if (got.size() != expected.size()) return "another number of values";
  const std::vector<std::string> names = executor.state_names();
  const std::size_t outputs = got.size() - names.size();
  std::string all;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!bit_equal(got[i], expected[i])) all += (i < outputs ? "output " + std::to_string(i) : names[i - outputs]) + " ";
  return all;
}

namespace {

void set_state(Executor& executor, const std::vector<Tensor>& state) {
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t s = 0; s < names.size(); ++s) executor.set_state(names[s], state[s]);
}

// Each number times 1 + shake or 1 - shake, in turn. Integers stay.
Tensor shaken(const Tensor& t, double shake) {
  if (t.dtype() != DType::f32) return t;
  std::vector<float> x = t.to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(i * 2654435761u % 64 < 32 ? 1 + shake : 1 - shake);
  return from_vector(x, t.shape());
}

}  // namespace

void run_near_the_cpu(Executor& gpu, Executor& cpu, const Nearness& nearness, const std::string& when) {
  std::vector<Tensor> before;
  for (const std::string& name : gpu.state_names()) before.push_back(gpu.state(name));
  set_state(cpu, before);
  gpu.run();
  cpu.run();
  const std::vector<Tensor> got = everything(gpu), expected = everything(cpu);
  std::vector<std::pair<std::size_t, double>> far;
  for (std::size_t k = 0; k < got.size(); ++k)
    if (const double d = nearness.distance(got[k], expected[k]); !(d <= nearness.tolerance)) far.emplace_back(k, d);
  if (far.empty()) return;
  constexpr double kTimes = 8;
  for (Tensor& t : before) t = shaken(t, nearness.shake);
  set_state(cpu, before);
  cpu.run();
  const std::vector<Tensor> rounded = everything(cpu);
  const std::vector<std::string> names = cpu.state_names();
  const std::size_t outputs = got.size() - names.size();
  for (const auto& [k, d] : far)
    EXPECT_LE(d, kTimes * nearness.distance(rounded[k], expected[k]))
        << when << ", " << (k < outputs ? "output " + std::to_string(k) : names[k - outputs]) << "; the tolerance is "
        << nearness.tolerance;
}

double relative_distance(const Tensor& got, const Tensor& expected) {
  if (!is_floating(expected.dtype())) return bit_equal(got, expected) ? 0 : 1;
  const std::vector<double> a = cast(got, DType::f64).to_vector<double>(), b = cast(expected, DType::f64).to_vector<double>();
  double differences = 0, squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return INFINITY;
    if (a[i] == b[i] || std::isnan(a[i])) continue;
    differences += (a[i] - b[i]) * (a[i] - b[i]);
  }
  for (const double x : b) squares += std::isnan(x) ? 0 : x * x;
  return std::sqrt(differences) / std::max(std::sqrt(squares), 1e-6);
}

}  // namespace tapedeck::gpu
