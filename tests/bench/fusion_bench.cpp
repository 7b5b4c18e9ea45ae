// Measures fused chains of elementwise ops (`plan --level 3`) against the same chain op by op, and against a loop that a person
// wrote. All three read x once and write y; ns_per_element is wall time on the threads of the process (TAPEDECK_THREADS=1 for
// one).
//
//   cheap      eight ops that a core does faster than memory: mul add relu square mul add max sub
//   heavy      the same with tanh and exp in the place of relu and square
//   relu6      the backward of relu6, a clamp: two comparisons, an and, a choice
//
// Each in 4096 elements (in the first cache of a core), 128K (in its second), 1M (in the last cache) and 16M (in memory).
#include <tapedeck/tapedeck.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace tapedeck;

enum Chain : std::int64_t { cheap, heavy, relu6 };

Tensor computed(Chain chain, const Tensor& x) {
  if (chain == relu6) return where(logical_and(greater(x, 0), less(x, 6)), x, 0);
  const Tensor a = x * 1.25f + 0.5f;
  const Tensor b = chain == cheap ? square(relu(a)) : exp(tanh(a));
  return maximum(b * 0.75f + 0.125f, 0.25f) - 0.0625f;
}

void report(benchmark::State& state, std::int64_t n) {
  state.counters["ns_per_element"] = benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(n) / 1e9,
                                                        benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void replayed(benchmark::State& state, OptimizationLevel level) {
  const auto chain = static_cast<Chain>(state.range(0));
  const std::int64_t n = state.range(1);
  const Tensor x = normal({n});
  Capture capture;
  capture.output("y", computed(chain, capture.input("x", x)));
  Executor executor(make_plan(capture.finish().graph, {.level = level}));
  executor.set_input(0, x);
  for (int i = 0; i < 3; ++i) executor.run();
  for (auto _ : state) executor.run();
  report(state, n);
  state.counters["nodes"] = static_cast<double>(executor.plan().nodes);
}

void op_by_op(benchmark::State& state) { replayed(state, OptimizationLevel::all); }
void fused(benchmark::State& state) { replayed(state, OptimizationLevel::fused); }

// The loop that a person would write, compiled for the processor at hand. It calls no function of its own, since gcc does not
// put functions into one with other flags; and without the second flag gcc makes jumps of the choices.
#define FOR_ALL(name, ...)                                                                                \
  [[gnu::optimize("O3", "no-trapping-math"), gnu::target_clones("default", "arch=x86-64-v3")]] void name( \
      const float* x, float* y, std::int64_t n) {                                                         \
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < n; ++i) {                                           \
      const float v = x[i];                                                                               \
      __VA_ARGS__;                                                                                        \
    }                                                                                                     \
  }
FOR_ALL(cheap_by_hand, const float a = v * 1.25f + 0.5f; const float r = a > 0 ? a : 0.0f;
        const float b = r * r * 0.75f + 0.125f; y[i] = (b > 0.25f ? b : 0.25f) - 0.0625f)
FOR_ALL(heavy_by_hand, const float b = std::exp(std::tanh(v * 1.25f + 0.5f)) * 0.75f + 0.125f;
        y[i] = (b > 0.25f ? b : 0.25f) - 0.0625f)
FOR_ALL(relu6_by_hand, y[i] = v > 0 && v < 6 ? v : 0.0f)

void by_hand(benchmark::State& state) {
  const auto chain = static_cast<Chain>(state.range(0));
  const std::int64_t n = state.range(1);
  const std::vector<float> x = normal({n}).to_vector<float>();
  std::vector<float> y(x.size());
  const auto by_hand_of = chain == cheap ? cheap_by_hand : chain == heavy ? heavy_by_hand : relu6_by_hand;
  for (auto _ : state) {
    by_hand_of(x.data(), y.data(), n);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  report(state, n);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"chain", "elements"})->UseRealTime();
  for (std::int64_t chain : {cheap, heavy, relu6})
    for (std::int64_t n : {std::int64_t{4096}, std::int64_t{1} << 17, std::int64_t{1} << 20, std::int64_t{1} << 24})
      b->Args({chain, n});
}

BENCHMARK(op_by_op)->Apply(sizes);
BENCHMARK(fused)->Apply(sizes);
BENCHMARK(by_hand)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
