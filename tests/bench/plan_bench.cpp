// Measures the milliseconds of make_plan for training steps of 1,000 to 100,000 nodes. The time includes the whole search
// for the floor.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <benchmark/benchmark.h>

#include <string>

namespace {

// n layers forward and n layers backward. Every fourth layer also reads the layer before the previous one (a residual). All
// layers differ in size and cost.
tapedeck::Graph training_step(int layers) {
  const auto type = [](int i) { return "u8[" + std::to_string(100000 + i * 3701 % 50000) + "]"; };
  const auto a = [](int i) { return i == 0 ? std::string("%x") : "%a" + std::to_string(i); };
  const auto g = [](int i) { return "%g" + std::to_string(i); };
  const auto us = [](int i) { return " {us=" + std::to_string(5 + i * 13 % 20) + ".0}"; };
  std::string text = "graph step(%x: " + type(0) + ") {\n";
  for (int i = 1; i <= layers; ++i) {
    const std::string skip = i % 4 == 0 ? ", " + a(i - 2) : "";
    text += a(i) + ": " + type(i) + " = opaque(" + a(i - 1) + skip + ")" + us(i) + "\n";
  }
  text += g(layers) + ": " + type(layers) + " = opaque(" + a(layers) + ") {us=5.0} [phase=backward]\n";
  for (int i = layers; i >= 1; --i)
    text += g(i - 1) + ": " + type(i - 1) + " = opaque(" + g(i) + ", " + a(i) + ")" + us(i) + " [phase=backward]\n";
  return tapedeck::parse(text + "return %g0\n}\n", "bench");
}

void plan(benchmark::State& state) {
  const tapedeck::Graph graph = training_step(static_cast<int>(state.range(0)) / 2);
  tapedeck::PlanOptions options;
  if (state.range(1) > 0) options.budget_percent = static_cast<double>(state.range(1));
  tapedeck::Plan plan;
  for (auto _ : state) plan = tapedeck::make_plan(graph, options);
  state.counters["peak_percent"] = 100.0 * static_cast<double>(plan.peak_bytes) / static_cast<double>(plan.keep_all_peak_bytes);
  state.counters["floor_percent"] =
      100.0 * static_cast<double>(plan.floor_bytes) / static_cast<double>(plan.keep_all_peak_bytes);
  state.counters["cost_ratio"] = plan.recompute_cost_ratio();
}
BENCHMARK(plan)
    ->ArgNames({"nodes", "budget_percent"})
    ->Args({1000, 0})
    ->Args({1000, 50})
    ->Args({10000, 0})
    ->Args({10000, 50})
    ->Args({100000, 0})
    ->Args({100000, 50})
    ->Unit(benchmark::kMillisecond);

}  // namespace
