// Measures the time that replay adds to the kernels: nanoseconds per node on 10,000 tiny ops, compared with a plain loop over
// an array of pairs (function, argument).
//
//   plain_loop/W      the reference: the same kernels on the same bytes, called from an array
//   replay/W/T        the executor on T threads
//   segments          every node in a segment of its own
//
// W is the number of chains side by side. With W = 1, a single chain of 10,000 nodes, a second thread only costs time; 16
// chains can be shared. `ns_per_node` is the result; items per second are nodes per second.
#include <tapedeck/tapedeck.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

constexpr int kNodes = 10000;
constexpr std::int64_t kItems = 16;

// `width` chains of sums. Each chain sometimes reads a neighbour, so that the chains do not become independent programs. No
// pass can simplify the sums, and the numbers stay small.
Graph chains(int width) {
  Graph g;
  const Type type{DType::f32, {kItems}};
  const ValueId x = g.add_input("x", type);
  std::vector<ValueId> ends(static_cast<std::size_t>(width), x);
  const Op &add = *find_op("add"), &maximum = *find_op("maximum");
  for (int n = 0; n < kNodes; ++n) {
    const auto at = static_cast<std::size_t>(n % width);
    const bool meet = width > 1 && n / width % 16 == 15;
    const ValueId pair[] = {ends[at], meet ? ends[(at + 1) % ends.size()] : x};
    const NodeId node = g.add_node(n < width && width > 1 && at % 2 ? maximum : add, pair, nullptr, std::span(&type, 1));
    ends[at] = g.nodes[node].first_output;
  }
  g.outputs = ends;
  g.output_names.resize(ends.size());
  return g;
}

void report(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kNodes);
  state.counters["ns_per_node"] = benchmark::Counter(static_cast<double>(state.iterations()) * kNodes / 1e9,
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void replay(benchmark::State& state) {
  const Plan plan = make_plan(chains(static_cast<int>(state.range(0))), {.threads = static_cast<int>(state.range(1))});
  Executor executor(plan, {.threads = static_cast<int>(state.range(1))});
  executor.set_input(0, default_value({DType::f32, {kItems}}, 1, "x"));
  for (auto _ : state) executor.run();
  state.counters["segments"] = static_cast<double>(plan.segments.size());
  report(state);
}
BENCHMARK(replay)->ArgNames({"chains", "threads"})->Args({1, 1})->Args({1, 2})->Args({16, 1})->Args({16, 2})->UseRealTime();

// Measures the cost of handing over a segment: every node is a segment of its own. `ns_per_segment` is thread time with the
// kernels included. replay/16/1 runs the same kernels in few segments; the difference is the cost of a segment on each
// thread.
void segments(benchmark::State& state) {
  const Plan plan = make_plan(chains(16), {.segment_us = 0});
  const int threads = static_cast<int>(state.range(0));
  Executor executor(plan, {.threads = threads});
  executor.set_input(0, default_value({DType::f32, {kItems}}, 1, "x"));
  for (auto _ : state) executor.run();
  const auto n = static_cast<double>(plan.segments.size());
  state.counters["segments"] = n;
  state.counters["ns_per_segment"] = benchmark::Counter(static_cast<double>(state.iterations()) * n / 1e9 / threads,
                                                        benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(segments)->ArgNames({"threads"})->Arg(1)->Arg(2)->UseRealTime();

// Uses the offsets of the plan, so that the plain loop and the replay walk the same memory.
struct PlainStep {
  Kernel kernel;
  KernelCall call;
};

void plain_loop(benchmark::State& state) {
  const Plan plan = make_plan(chains(static_cast<int>(state.range(0))));
  const Graph& g = plan.graph;
  std::vector<float> arena(static_cast<std::size_t>(plan.arena_bytes / 4 + 1)), input(kItems, 1.0f);
  std::vector<std::vector<float>> slots(plan.output_slots.size(), std::vector<float>(kItems));
  std::vector<View> views(static_cast<std::size_t>(g.value_count()));
  for (std::size_t v = 0; v < views.size(); ++v) {
    const Placement& p = plan.values[v];
    char* base = reinterpret_cast<char*>(p.where == Where::arena   ? arena.data()
                                         : p.where == Where::input ? input.data()
                                                                   : slots[p.slot].data());
    views[v].data = base + p.offset;
    views[v].rank = 1;
    views[v].sizes[0] = kItems;
    views[v].strides[0] = 1;
  }
  KernelFault fault;
  std::vector<View> operands(static_cast<std::size_t>(g.node_count()) * 3);
  std::vector<PlainStep> steps;
  View* mine = operands.data();
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    for (int i = 0; i < node.n_inputs; ++i) mine[i] = views[g.inputs(node)[i]];
    mine[node.n_inputs] = views[node.first_output];
    KernelCall call;
    call.inputs = mine;
    call.outputs = mine + node.n_inputs;
    call.n_inputs = node.n_inputs;
    call.n_outputs = 1;
    call.fault = &fault;
    steps.push_back({node.op->kernels[0], call});
    mine += node.n_inputs + 1;
  }
  for (auto _ : state) {
    for (const PlainStep& step : steps) step.kernel(step.call);
    benchmark::ClobberMemory();
  }
  report(state);
}
BENCHMARK(plain_loop)->ArgNames({"chains"})->Arg(1)->Arg(16)->UseRealTime();

}  // namespace
