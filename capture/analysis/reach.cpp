#include <tapedeck/capture/analysis/reach.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

// Calls f with every node that node n waits for, some more than once.
template <class F>
void each_predecessor(const Graph& graph, NodeId n, F f) {
  const Node& node = graph.nodes[n];
  for (const auto& list : {graph.inputs(node), graph.after(node)})
    for (ValueId v : list)
      if (graph.values[v].node != kNone) f(graph.values[v].node);
}

}  // namespace

bool reachable(const Graph& graph, NodeId from, NodeId to) {
  if (from >= to) return from == to;
  std::vector<char> reached(static_cast<std::size_t>(to - from) + 1, 0);  // by node, from `from` on; nodes stand in order
  reached[0] = 1;
  for (NodeId n = from + 1; n <= to; ++n)
    each_predecessor(graph, n, [&](NodeId p) {
      if (p >= from && reached[p - from]) reached[n - from] = 1;
    });
  return reached.back() != 0;
}

std::vector<std::uint64_t> predecessor_masks(const Graph& graph, std::span<const NodeId> sources) {
  if (sources.size() > 64) throw UsageError(fmt::format("{} sources, but a mask has 64 bits", sources.size()));
  std::vector<std::uint64_t> masks(graph.nodes.size(), 0);
  for (std::size_t k = 0; k < sources.size(); ++k) masks[sources[k]] |= std::uint64_t{1} << k;
  for (NodeId n = 0; n < graph.node_count(); ++n) each_predecessor(graph, n, [&](NodeId p) { masks[n] |= masks[p]; });
  return masks;
}

std::vector<NodeId> source_nodes(const Graph& graph) {
  std::vector<NodeId> sources;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    bool waits = false;
    each_predecessor(graph, n, [&](NodeId) { waits = true; });
    if (!waits) sources.push_back(n);
  }
  return sources;
}

std::vector<NodeId> sink_nodes(const Graph& graph) {
  std::vector<char> waited_for(graph.nodes.size(), 0);
  for (NodeId n = 0; n < graph.node_count(); ++n) each_predecessor(graph, n, [&](NodeId p) { waited_for[p] = 1; });
  std::vector<NodeId> sinks;
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (!waited_for[n]) sinks.push_back(n);
  return sinks;
}

}  // namespace tapedeck
