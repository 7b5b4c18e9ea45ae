#include <tapedeck/capture/analysis/liveness.h>

namespace tapedeck {

Readers::Readers(const Graph& graph) : first_(graph.values.size() + 2, 0) {
  // `seen[v] == n` while node n has already been counted as a reader of v.
  const auto each_reader = [&](auto&& visit) {
    std::vector<NodeId> seen(graph.values.size(), kNone);
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      for (ValueId v : graph.inputs(graph.nodes[n])) {
        if (seen[v] == n) continue;
        seen[v] = n;
        visit(v, n);
      }
    }
  };
  // Counting sort. It counts two places further up, so that first_[v] is the start of the list of v after filling.
  each_reader([&](ValueId v, NodeId) { ++first_[v + 2]; });
  for (std::size_t i = 2; i < first_.size(); ++i) first_[i] += first_[i - 1];
  nodes_.resize(static_cast<std::size_t>(first_.back()));
  each_reader([&](ValueId v, NodeId n) { nodes_[first_[v + 1]++] = n; });
}

std::vector<std::int64_t> sum_alive(const std::vector<Interval>& intervals, NodeId n_nodes) {
  std::vector<std::int64_t> alive(static_cast<std::size_t>(n_nodes) + 1, 0);
  for (const Interval& i : intervals) {
    alive[i.birth] += i.bytes;
    alive[i.death + 1] -= i.bytes;
  }
  for (NodeId n = 0; n < n_nodes; ++n) alive[n + 1] += alive[n];
  alive.resize(static_cast<std::size_t>(n_nodes));
  return alive;
}

}  // namespace tapedeck
