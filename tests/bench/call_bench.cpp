// Measures the fixed cost of a call: the time of a run whose nodes have almost nothing to compute. Small models feel this cost.
//
//   run/N/T             the executor on T threads, a chain of N tiny nodes
//   run_with_state/N    a chain of N updates of N bound tensors
//   run_observed/N      with timing, a stop flag and a progress callback
//   captured_step/N     a call of a captured step of N ops: the run above, and checks, inputs and results of the call
#include <tapedeck/tapedeck.h>

#include <benchmark/benchmark.h>

#include <atomic>
#include <vector>

namespace {

using namespace tapedeck;

const Type kType{DType::f32, {16}};

Tensor values() { return default_value(kType, 1, "x"); }

Graph chain(std::int64_t nodes) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  ValueId v = x;
  for (std::int64_t n = 0; n < nodes; ++n) {
    const ValueId pair[] = {v, x};
    g.add_node(*find_op("add"), pair, nullptr, std::span(&kType, 1));
    v = g.value_count() - 1;
  }
  g.outputs = {v};
  g.output_names.resize(1);
  return g;
}

void run(benchmark::State& state) {
  Executor executor(make_plan(chain(state.range(0))), {.threads = static_cast<int>(state.range(1))});
  executor.set_input(0, values());
  for (auto _ : state) executor.run();
}
BENCHMARK(run)->ArgNames({"nodes", "threads"})->Args({1, 1})->Args({20, 1})->Args({1, 2})->Args({20, 2});

void run_with_state(benchmark::State& state) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  std::vector<Tensor> tensors;
  for (std::int64_t n = 0; n < state.range(0); ++n) g.add_state(Name("s" + std::to_string(n)), kType, Role::parameter);
  for (ValueId s = 1; s <= state.range(0); ++s) {
    const ValueId pair[] = {s, x};
    g.add_node(*find_op("add"), pair, nullptr, std::span(&kType, 1));
    g.updates.push_back({s, g.value_count() - 1});
  }
  Executor executor(make_plan(g));
  executor.set_input(0, values());
  for (const std::string& name : executor.state_names()) executor.bind_state(name, tensors.emplace_back(values()));
  for (auto _ : state) executor.run();
}
BENCHMARK(run_with_state)->ArgNames({"nodes"})->Arg(1)->Arg(20);

void run_observed(benchmark::State& state) {
  Executor executor(make_plan(chain(state.range(0))));
  executor.set_input(0, values());
  Timeline times;
  std::atomic<bool> cancel{false};
  RunOptions options{.timeline = &times, .cancel = &cancel, .progress = [](double) {}};
  for (auto _ : state) executor.run(options);
}
BENCHMARK(run_observed)->ArgNames({"nodes"})->Arg(20);

void captured_step(benchmark::State& state) {
  const std::int64_t nodes = state.range(0);
  CapturedStep step = capture([nodes](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor x = in[0];
    for (std::int64_t i = 0; i < nodes; ++i) x = x + in[0];
    return {x};
  });
  const Tensor x = values();
  for (int i = 0; i < 3; ++i) step({x});
  for (auto _ : state) step({x});
}
BENCHMARK(captured_step)->ArgNames({"nodes"})->Arg(1)->Arg(20);

}  // namespace
