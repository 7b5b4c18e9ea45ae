#include <tapedeck/capture/planner/segments/precedence.h>

#include <tapedeck/capture/analysis/traits.h>

#include <algorithm>

namespace tapedeck {

Precedence::Precedence(const Graph& graph, const std::vector<Edge>& reuse_edges) {
  std::vector<Edge> by_later = reuse_edges;
  std::sort(by_later.begin(), by_later.end(), [](const Edge& a, const Edge& b) { return a.after < b.after; });
  auto edge = by_later.begin();
  NodeId last_effect = kNone;
  first_.push_back(0);
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    const auto wait_for = [&](NodeId maker) {
      if (maker != kNone && !graph.literal(graph.nodes[maker])) nodes_.push_back(maker);
    };
    if (!graph.literal(node)) {
      for (ValueId v : graph.inputs(node)) wait_for(graph.values[v].node);
      for (ValueId v : graph.after(node)) wait_for(graph.values[v].node);
    }
    for (; edge != by_later.end() && edge->after == n; ++edge) wait_for(edge->before);
    if (traits_within(graph, node) & kEffect) {
      wait_for(last_effect);
      last_effect = n;
    }
    const auto first = nodes_.begin() + first_.back();
    std::sort(first, nodes_.end());
    nodes_.erase(std::unique(first, nodes_.end()), nodes_.end());
    first_.push_back(static_cast<std::int64_t>(nodes_.size()));
  }
}

double critical_path(const Precedence& precedence, const std::vector<double>& node_cost) {
  std::vector<double> finish(node_cost.size(), 0);
  double longest = 0;
  for (NodeId n = 0; n < precedence.node_count(); ++n) {
    for (NodeId p : precedence.before(n)) finish[n] = std::max(finish[n], finish[p]);
    finish[n] += node_cost[n];
    longest = std::max(longest, finish[n]);
  }
  return longest;
}

}  // namespace tapedeck
