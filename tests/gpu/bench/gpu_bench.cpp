// Times replays and kernels on a GPU.
//
//   gpu_bench [--json FILE] [--seconds S] [--only TEXT] [--once] [--probe] [--engines]
//
// --only takes the workload of this name, or all workloads and kernels whose name holds the text. --once runs one step of each
// workload without a graph, and times nothing: for a profiler. --probe prints what the device is. --engines times every way to
// compute the convolutions of engine_bench.cpp, and nothing else. The exit code is 1 if something failed, and 6 with one line
// if there is no device.
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/tests/gpu/bench/engine_bench.h>
#include <tapedeck/tests/gpu/bench/kernel_bench.h>
#include <tapedeck/tests/gpu/bench/workloads.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tapedeck::gpu {
namespace {

struct Arguments {
  std::string json, only;
  double seconds = 90;
  bool once = false, probe = false, engines = false;
};

void set_all(Executor* executor, const Captured& values) {
  const Graph& g = values.graph;
  for (std::size_t i = 0; i < values.inputs.size(); ++i) executor->set_input(static_cast<int>(i), values.inputs[i]);
  for (std::size_t s = 0; s < values.state.size(); ++s)
    executor->set_state(g.value_name(g.n_inputs + static_cast<ValueId>(s)), values.state[s]);
}

void bench_workload(const Workload& w, double seconds, bool once, Rows* rows) {
  try {
    const auto begin = Clock::now();
    const Captured captured = w.record();
    const Plan plan = make_device_plan(captured.graph, w.plan);
    Executor executor(plan, {.device = "cuda"});
    set_all(&executor, captured);
    executor.run();
    if (once) return;
    const double ready_ms = us_since(begin) / 1000;
    const Times t = measure([&] { executor.launch(); }, [&] { executor.synchronize(); }, seconds, 3, 150, 500);
    const DeviceCounters counters = executor.device_counters();
    rows->add(w.name, t,
              {{"nodes", std::to_string(plan.nodes)},
               {"graph_nodes", std::to_string(counters.graph_nodes)},
               {"host_nodes", std::to_string(counters.host_nodes)},
               {"steps_ahead", std::to_string(counters.steps_ahead)},
               {"graphs", counters.without_graphs.empty() ? "true" : "false"},
               {"peak_bytes", std::to_string(executor.observed_peak_bytes())},
               {"ready_ms", fmt::format("{:.1f}", ready_ms)}});
  } catch (const std::exception& error) {
    rows->failed(w.name, error.what());
  }
}

int run(const Arguments& arguments) {
  const kernels::cuda::CudaStatus& status = kernels::cuda::cuda_status();
  if (!status.available) {
    fmt::print(stderr, "gpu_bench: {}\n", status.reason);
    return 6;
  }
  kernels::cuda::DeviceProperties device;
  if (const char* error = kernels::cuda::device_properties(0, &device)) {
    fmt::print(stderr, "gpu_bench: {}\n", error);
    return 6;
  }
  fmt::print("{}, sm_{}, {} MiB, {} multiprocessors, driver {}, runtime {}\n", device.name, device.sm,
             device.memory_bytes >> 20, device.multiprocessors, device.driver_version, device.runtime_version);
  if (arguments.probe) return 0;
  Rows rows(arguments.json);
  if (arguments.engines) {
    bench_engines(arguments.only, arguments.seconds, &rows);
    return rows.failures() > 0 ? 1 : 0;
  }
  const auto begin = Clock::now();
  const std::vector<Workload> all = workloads();
  const bool is_a_name = std::any_of(all.begin(), all.end(), [&](const Workload& w) { return w.name == arguments.only; });
  const auto in_time = [&](const std::string& name) {
    if (is_a_name ? name != arguments.only : name.find(arguments.only) == std::string::npos) return false;
    if (us_since(begin) < arguments.seconds * 1e6) return true;
    rows.failed(name, "left out: the time was over");
    return false;
  };
  for (const Workload& w : all)
    if (in_time(w.name)) bench_workload(w, 2, arguments.once, &rows);
  if (arguments.once) return rows.failures() > 0 ? 1 : 0;
  for (const KernelCase& c : kernel_cases())
    if (in_time(c.example)) bench_kernel(c, 0.4, &rows);
  return rows.failures() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tapedeck::gpu

int main(int argc, char** argv) {
  tapedeck::gpu::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--json"))
      arguments.json = argv[++i];
    else if (is("--seconds"))
      arguments.seconds = std::atof(argv[++i]);
    else if (is("--only"))
      arguments.only = argv[++i];
    else if (std::strcmp(argv[i], "--once") == 0)
      arguments.once = true;
    else if (std::strcmp(argv[i], "--probe") == 0)
      arguments.probe = true;
    else if (std::strcmp(argv[i], "--engines") == 0)
      arguments.engines = true;
    else
      return fmt::print(stderr, "gpu_bench [--json FILE] [--seconds S] [--only TEXT] [--once] [--probe] [--engines]\n"), 2;
  }
  return tapedeck::gpu::run(arguments);
}
