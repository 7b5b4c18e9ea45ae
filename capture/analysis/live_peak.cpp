#include <tapedeck/capture/analysis/live_peak.h>

#include <tapedeck/kernels/checked_math.h>

#include <algorithm>
#include <vector>

namespace tapedeck {

namespace {

// By value: the value whose bytes it shows.
std::vector<ValueId> roots_of(const Graph& graph) {
  std::vector<ValueId> roots(graph.values.size());
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const NodeId n = graph.values[v].node;
    const bool window = n != kNone && graph.nodes[n].op->is(kView) && graph.nodes[n].n_inputs == 1;
    roots[v] = window ? roots[graph.inputs(graph.nodes[n])[0]] : v;
  }
  return roots;
}

// By root: the last node that needs it; node_count() if it stays alive to the end.
std::vector<NodeId> deaths(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<NodeId> death(graph.values.size(), kNone);
  for (ValueId v = 0; v < graph.value_count(); ++v) death[roots[v]] = std::max(death[roots[v]], graph.values[v].node);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    for (ValueId v : graph.inputs(graph.nodes[n])) death[roots[v]] = n;
  for (ValueId v : graph.outputs) death[roots[v]] = graph.node_count();
  for (const Update& u : graph.updates) death[roots[u.value]] = graph.node_count();
  return death;
}

// The bytes of the nested graphs of a node, without the operands that the node holds anyway.
std::int64_t inside(const Graph& graph, const Node& node) {
  std::int64_t most = 0;
  for (const Region& region : graph.regions_of(node)) {
    std::int64_t given = 0;
    for (ValueId v = 0; v < region->n_inputs; ++v) given += region->values[v].type.bytes();
    most = std::max(most, live_peak(*region) - given);
  }
  return most;
}

}  // namespace

std::int64_t live_peak(const Graph& graph) {
  const std::vector<ValueId> roots = roots_of(graph);
  const std::vector<NodeId> death = deaths(graph, roots);
  std::int64_t alive = 0;
  std::vector<std::int64_t> freed(graph.nodes.size() + 1, 0);
  const auto own_bytes = [&](ValueId v) { return roots[v] == v ? graph.values[v].type.bytes() : 0; };
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) alive += own_bytes(v);
  for (const Node& node : graph.nodes)
    if (graph.literal(node)) alive += own_bytes(node.first_output);
  std::int64_t peak = alive;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      if (graph.literal(node)) continue;
      alive += own_bytes(v);
      if (death[v] < graph.node_count() && death[v] >= 0) freed[death[v]] += own_bytes(v);
    }
    peak = std::max(peak, limited_sum({alive, inside(graph, node)}));
    alive -= freed[n];
  }
  return peak;
}

}  // namespace tapedeck
