// Measures the time of gradient(graph) per forward node (`per_node`) for 1,000 to 100,000 forward nodes. The graphs are a
// chain, one value with many readers, layers with a weight and a bias each (at 100,000 nodes up to 40,000 parameters), and
// slices that cover a vector.
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/ops.h>

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Problem {
  Graph graph;
  std::vector<ValueId> targets, wrt;

  ValueId add(const Op& op, std::vector<ValueId> in, const Type& type, const void* attrs = nullptr) {
    const NodeId n = graph.add_node(op, in, attrs, {&type, 1});
    return graph.nodes[n].first_output;
  }
};

const Type kRow{DType::f32, {4, 16}}, kSquare{DType::f32, {16, 16}}, kBias{DType::f32, {16}};

Problem chain(int nodes) {
  Problem p;
  ValueId v = p.graph.add_input("x", kRow);
  p.wrt = {v};
  for (int i = 0; i < nodes; ++i) v = p.add(i % 2 ? ops::tanh : ops::sin, {v}, kRow);
  p.targets = {v};
  return p;
}

// Half of the nodes read one value. The other half adds their results up.
Problem fan_out(int nodes) {
  Problem p;
  const ValueId x = p.graph.add_input("x", kRow);
  p.wrt = {x};
  ValueId sum = p.add(ops::sin, {x}, kRow);
  for (int i = 1; i < nodes / 2; ++i) sum = p.add(ops::add, {sum, p.add(ops::sin, {x}, kRow)}, kRow);
  p.targets = {sum};
  return p;
}

// Layers of three nodes each.
Problem layers(int nodes) {
  Problem p;
  ValueId h = p.graph.add_input("x", kRow);
  const int n = nodes / 3;
  for (int i = 0; i < n; ++i) {
    p.wrt.push_back(p.graph.add_state("w" + std::to_string(i), kSquare, Role::parameter));
    p.wrt.push_back(p.graph.add_state("b" + std::to_string(i), kBias, Role::parameter));
  }
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(2 * i);
    const ValueId product = p.add(ops::matmul, {h, p.wrt[k]}, kRow);
    h = p.add(ops::tanh, {p.add(ops::add, {product, p.wrt[k + 1]}, kRow)}, kRow);
  }
  p.targets = {h};
  return p;
}

// Half of the nodes are slices of one element of one vector. The other half reads these slices.
Problem windows(int nodes) {
  Problem p;
  const int n = nodes / 2;
  const ValueId x = p.graph.add_input("x", {DType::f32, {n}});
  p.wrt = {x};
  for (int i = 0; i < n; ++i) {
    const SliceAttrs attrs{{i}, {i + 1}, {}};
    const Type one{DType::f32, {1}};
    p.targets.push_back(p.add(ops::sin, {p.add(ops::slice, {x}, one, &attrs)}, one));
  }
  return p;
}

template <Problem (*make)(int)>
void generate(benchmark::State& state) {
  const Problem p = make(static_cast<int>(state.range(0)));
  NodeId nodes = 0;
  for (auto _ : state) nodes = gradient(p.graph, p.targets, p.wrt).graph.node_count();
  state.counters["wrts"] = static_cast<double>(p.wrt.size());
  state.counters["nodes_after"] = static_cast<double>(nodes);
  state.counters["per_node"] = benchmark::Counter(static_cast<double>(p.graph.node_count()),
                                                  benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

#define GROWTH(make) BENCHMARK(generate<make>)->Name(#make)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)
GROWTH(chain);
GROWTH(fan_out);
GROWTH(layers);
GROWTH(windows);

}  // namespace
