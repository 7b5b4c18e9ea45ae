// Measures the cost of sharing memory: microseconds per run for members of a pool that take turns, and for the same executors
// with memory of their own.
//
//   turns/N/pooled     N inference executors of different batch sizes run one after the other
//   updates/pooled     a step that updates its weights and a step that returns them run in turn: before each update the pool
//                      copies the returned weights
//
// `us_per_run` is the result; `peak_bytes` is the memory of all executors together.
#include <tapedeck/tapedeck.h>

#include <tapedeck/engine/text/text.h>

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

// A chain of twenty small nodes. Its kernels are so short that they do not hide the time of switching.
Graph chain(int batch, bool updates) {
  const std::string rows = "f32[" + std::to_string(batch) + ",16]";
  std::string text =
      "graph batch" + std::to_string(batch) + "(%x: " + rows + ") state(%w: f32[16]) {\n  %v0: " + rows + " = add(%x, %w)\n";
  for (int i = 1; i < 20; ++i)
    text += "  %v" + std::to_string(i) + ": " + rows + " = " + (i % 2 ? "neg" : "tanh") + "(%v" + std::to_string(i - 1) + ")\n";
  text += "  %s: f32[16] = sum(%v19) {axes=[0]}\n";
  return parse(text + (updates ? "  %w2: f32[16] = tanh(%s)\n  return %s\n  update %w = %w2\n}" : "  return %s, %w\n}"));
}

struct Cast {
  std::shared_ptr<ReplayPool> pool;
  std::vector<Executor> members;

  Cast(const std::vector<Graph>& graphs, bool pooled) : pool(pooled ? std::make_shared<ReplayPool>() : nullptr) {
    for (const Graph& g : graphs) {
      members.emplace_back(make_plan(g), ExecutorOptions{.pool = pool});
      members.back().set_input("x", default_value(g.values[0].type, 1, "x"));
      members.back().set_state("w", default_value({DType::f32, {16}}, 1, "w"));
    }
    for (Executor& m : members) m.run();
  }
  std::int64_t peak_bytes() const {
    if (pool) return pool->observed_peak_bytes();
    std::int64_t bytes = 0;
    for (const Executor& m : members) bytes += m.observed_peak_bytes();
    return bytes;
  }
};

void run(benchmark::State& state, Cast& cast) {
  for (auto _ : state)
    for (Executor& m : cast.members) m.run();
  state.counters["us_per_run"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(cast.members.size()) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes"] = static_cast<double>(cast.peak_bytes());
}

void turns(benchmark::State& state) {
  std::vector<Graph> graphs;
  for (int i = 0; i < state.range(0); ++i) graphs.push_back(chain(1 + 4 * i, false));
  Cast cast(graphs, state.range(1) != 0);
  run(state, cast);
}
BENCHMARK(turns)->ArgNames({"members", "pooled"})->ArgsProduct({{1, 2, 8}, {0, 1}})->UseRealTime();

void updates(benchmark::State& state) {
  Cast cast({chain(8, true), chain(1, false)}, state.range(0) != 0);
  run(state, cast);
}
BENCHMARK(updates)->ArgNames({"pooled"})->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
