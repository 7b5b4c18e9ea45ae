// Measures the gain and the cost of cutting a plan into segments.
//
//   branches/I/P/T  replays 16 independent branches of 10 tanh, which meet at the end, on T threads by a plan for P threads.
//                   I = 1: recorded one step of all branches after the other; I = 0: recorded branch by branch. `model_x` is
//                   the gain that the plan expects from threads; `peak_x` is its peak over the peak of the plan for one thread.
//   cut/N/P         make_plan of N nodes in 16 branches for P threads; `ns_per_node` should stay the same as N grows.
#include <tapedeck/tapedeck.h>

#include <tapedeck/engine/text/text.h>

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace {

using namespace tapedeck;

constexpr int kBranches = 16;

// Each branch has its own slope, so that no pass finds two equal branches.
Graph branches(int length, bool interleaved, std::int64_t items) {
  std::string text, size = "f32[" + std::to_string(items) + "]";
  const auto v = [](int b, int i) { return "%b" + std::to_string(b) + "_" + std::to_string(i); };
  const auto line = [&](int b, int i) {
    if (i == 0) text += v(b, 0) + ": " + size + " = mul(%x, %s" + std::to_string(b) + ")\n";
    if (i > 0) text += v(b, i) + ": " + size + " = tanh(" + v(b, i - 1) + ")\n";
  };
  text = "graph branches(%x: " + size;
  for (int b = 0; b < kBranches; ++b) text += ", %s" + std::to_string(b) + ": f32[]";
  text += ") {\n";
  for (int i = 0; i < kBranches * length; ++i) interleaved ? line(i % kBranches, i / kBranches) : line(i / length, i % length);
  for (int b = 1; b < kBranches; ++b)
    text += "%sum" + std::to_string(b) + ": " + size + " = add(" +
            (b == 1 ? v(0, length - 1) : "%sum" + std::to_string(b - 1)) + ", " + v(b, length - 1) + ")\n";
  return parse(text + "return %sum" + std::to_string(kBranches - 1) + "\n}\n", "branches");
}

PlanOptions for_threads(std::int64_t threads) {
  PlanOptions options;
  options.threads = static_cast<std::int32_t>(threads);
  return options;
}

void replay_branches(benchmark::State& state) {
  constexpr std::int64_t kItems = 16384;
  const Graph graph = branches(10, state.range(0) != 0, kItems);
  const Plan one = make_plan(graph), plan = make_plan(graph, for_threads(state.range(1)));
  Executor executor(plan, {.threads = static_cast<int>(state.range(2))});
  executor.set_input(0, default_value({DType::f32, {kItems}}, 1, "x"));
  for (int b = 0; b < kBranches; ++b) executor.set_input(1 + b, scalar(0.1 * (b + 1)));
  for (auto _ : state) executor.run();
  state.counters["segments"] = static_cast<double>(plan.segments.size());
  state.counters["model_x"] = plan.segment_rule.serial_us / plan.segment_rule.makespan_us;
  state.counters["peak_x"] = static_cast<double>(plan.peak_bytes) / static_cast<double>(one.peak_bytes);
}
BENCHMARK(replay_branches)
    ->Name("branches")
    ->ArgNames({"interleaved", "plan", "threads"})
    ->Args({1, 1, 1})
    ->Args({1, 1, 2})
    ->Args({1, 2, 2})
    ->Args({0, 1, 1})
    ->Args({0, 1, 2})
    ->Args({0, 2, 2})
    ->UseRealTime();

void cut(benchmark::State& state) {
  const Graph graph = branches(static_cast<int>(state.range(0)) / kBranches, true, 1000);
  const PlanOptions options = for_threads(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(graph, options));
  state.counters["ns_per_node"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(graph.node_count()) / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(cut)
    ->ArgNames({"nodes", "plan"})
    ->Args({10000, 1})
    ->Args({10000, 2})
    ->Args({100000, 1})
    ->Args({100000, 2})
    ->Unit(benchmark::kMillisecond);

}  // namespace
