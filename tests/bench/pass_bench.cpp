// Measures the milliseconds of every pass on graphs of 1,000, 10,000 and 100,000 nodes. The time per node must not grow.
#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/replay/partition.h>
#include <tapedeck/engine/text/text.h>

#include <benchmark/benchmark.h>

#include <map>
#include <string>

namespace {

using namespace tapedeck;

// Blocks of twenty nodes with work for every pass: constants, identities, views of views, casts there and back, a copy,
// equal nodes, dead nodes, a loop with an invariant. `%h` runs through all blocks. Every tenth block also reads a value of a
// much earlier block.
std::string block(int k, const std::string& h, const std::string& old) {
  const std::string b = "%b" + std::to_string(k) + "_";
  const auto line = [&](int i, const std::string& what) { return b + std::to_string(i) + ": " + what + "\n"; };
  const auto v = [&](int i) { return b + std::to_string(i); };
  return line(0, "f32[] = full() {shape=[], dtype=f32, value=1.0}") + line(1, "f32[] = neg(" + v(0) + ")") +
         line(2, "f32[8,8] = mul(" + h + ", " + v(0) + ")") + line(3, "f32[8,8] = neg(" + v(2) + ")") +
         line(4, "f32[8,8] = neg(" + v(3) + ")") + line(5, "f32[64] = reshape(" + v(4) + ") {shape=[64]}") +
         line(6, "f32[4,16] = reshape(" + v(5) + ") {shape=[4,16]}") +
         line(7, "f32[8,8] = reshape(" + v(6) + ") {shape=[8,8]}") +
         line(8, "f32[8,8] = transpose(" + v(7) + ") {axes=[1,0]}") +
         line(9, "f32[8,8] = transpose(" + v(8) + ") {axes=[1,0]}") + line(10, "f64[8,8] = cast(" + v(9) + ") {dtype=f64}") +
         line(11, "f32[8,8] = cast(" + v(10) + ") {dtype=f32}") + line(12, "f32[8,8] = copy(" + v(11) + ")") +
         line(13, "f32[8,8] = tanh(" + v(12) + ")") + line(14, "f32[8,8] = tanh(" + v(12) + ")") +
         line(15, "f32[8,8] = add(" + v(13) + ", " + v(14) + ")") + line(16, "f32[8,8] = exp(" + v(15) + ")") +
         line(17, "f32[8,8] = broadcast_to(" + v(1) + ") {shape=[8,8]}") +
         line(18, "f32[8,8] = mul(" + v(15) + ", " + v(17) + ")") + line(19, "f32[8,8] = add(" + v(18) + ", " + old + ")");
}

const Graph& graph_of(int nodes) {
  static std::map<int, Graph> made;
  if (const auto known = made.find(nodes); known != made.end()) return known->second;
  std::string text = "graph bench(%x: f32[8,8]) state(%w: f32[8,8]) {\n", h = "%x";
  const auto out = [](int k) { return "%b" + std::to_string(k) + "_19"; };
  for (int k = 0; k < nodes / 20; ++k) {
    text += block(k, h, k % 10 == 9 ? out(k / 2) : "%w");
    h = out(k);
  }
  const std::string loop = "%y: f32[8,8] = scan(" + h +
                           ", %w) {carried=1, trips=3} (%i: i64[], %c: f32[8,8], %v: f32[8,8]) {\n"
                           "%a: f32[8,8] = exp(%v)\n%d: f32[8,8] = mul(%c, %a)\nreturn %d\n}\n";
  return made[nodes] = parse(text + loop + "return %y\nupdate %w = " + h + "\n}\n", "bench");
}

void time_per_node(benchmark::State& state) {
  const auto inverse_rate = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
  state.counters["per_node"] =
      benchmark::Counter(static_cast<double>(state.range(0)), static_cast<benchmark::Counter::Flags>(inverse_rate));
}

void run(benchmark::State& state, const Pass* pass, bool fast_math) {
  const Graph& graph = graph_of(static_cast<int>(state.range(0)));
  PassOptions options = pass->sample;
  options.fast_math = fast_math;
  for (auto _ : state) benchmark::DoNotOptimize(run_pass(*pass, graph, options));
  time_per_node(state);
}

void fusion(benchmark::State& state) {
  const Graph& graph = graph_of(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(find_fusion_groups(graph));
  time_per_node(state);
}

void cut(benchmark::State& state) {
  const Graph& graph = graph_of(static_cast<int>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(partition(graph, [](const Graph& g, NodeId n) { return g.nodes[n].op->is(kElementwise); }));
  time_per_node(state);
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond); }

const bool registered = [] {
  for (const Pass* pass : all_passes()) {
    sizes(benchmark::RegisterBenchmark(pass->name, run, pass, false));
    if (std::string(pass->name) == "algebra") sizes(benchmark::RegisterBenchmark("algebra_fast_math", run, pass, true));
  }
  sizes(benchmark::RegisterBenchmark("fusion_groups", fusion));
  sizes(benchmark::RegisterBenchmark("partition", cut));
  return true;
}();

}  // namespace
