// Measures one training step of the digits net with batch 64: run eagerly, replayed with all values kept, and replayed under
// half the memory.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/samples/zoo/digits_net.h>

#include <benchmark/benchmark.h>

using namespace tapedeck;

namespace {

struct Setup {
  zoo::DigitsNet net;
  AdamW optimizer{net.parameters(), {.lr = 1e-3}};
  Tensor x = uniform({64, 1, 8, 8}), y;
  Setup() {
    std::vector<std::int32_t> labels(64);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 10);
    y = from_vector(labels, {64});
  }
};

void DigitsEager(benchmark::State& state) {
  Setup s;
  for (auto _ : state) benchmark::DoNotOptimize(zoo::train_step(s.net, s.optimizer, s.x, s.y).item());
}

// Argument 0: the number of threads. Argument 1: 0 keeps all values; 1 allows half of the bytes that are not always held.
void DigitsReplay(benchmark::State& state) {
  Setup s;
  Capture capture("digits");
  const Tensor x = capture.input("x", s.x), y = capture.input("y", s.y);
  capture.output("loss", zoo::train_step(s.net, s.optimizer, x, y));
  const Captured step = capture.finish();
  Plan plan = make_plan(step.graph, {.strategy = Strategy::none});
  if (state.range(1))
    plan = make_plan(step.graph, {.budget = plan.external_bytes + (plan.peak_bytes - plan.external_bytes) / 2});
  Executor executor(plan, {.threads = static_cast<int>(state.range(0))});
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t i = 0; i < names.size(); ++i) executor.bind_state(names[i], step.state[i]);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) executor.set_input(static_cast<int>(i), step.inputs[i]);
  for (auto _ : state) executor.run();
  state.counters["peak_KiB"] = static_cast<double>(executor.observed_peak_bytes()) / 1024;
  state.counters["recomputed"] = plan.recomputed_nodes;
}

BENCHMARK(DigitsEager)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(DigitsReplay)->ArgsProduct({{1, 2}, {0, 1}})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
