#include <tapedeck/capture/analysis/fusion.h>

#include <algorithm>

namespace tapedeck {

namespace {

class Grouping {
 public:
  Grouping(const Graph& graph, std::int32_t most_nodes)
      : graph_(graph),
        most_(most_nodes),
        level_(graph.nodes.size(), 0),
        group_(graph.nodes.size()),
        size_(graph.nodes.size(), 1) {
    for (std::size_t n = 0; n < group_.size(); ++n) group_[n] = static_cast<NodeId>(n);
  }

  FusionGroups run() {
    for (NodeId n = 0; n < graph_.node_count(); ++n) join(n);
    FusionGroups groups;
    groups.of_node.assign(graph_.nodes.size(), kNone);
    std::vector<std::int32_t> number(graph_.nodes.size(), kNone);  // by first node of the group
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      const NodeId first = find(n);
      if (size_[first] < 2) continue;
      if (number[first] == kNone) number[first] = groups.count++;
      groups.of_node[n] = number[first];
    }
    return groups;
  }

 private:
  bool pointwise(const Node& node) const {
    return node.op->is(kElementwise) && !node.op->is(kEffect) && node.n_outputs == 1 && node.n_regions == 0;
  }

  // One iteration space: an operand that is handed over is as large as the result.
  bool fusable(NodeId from, NodeId to) const {
    const Node &a = graph_.nodes[from], &b = graph_.nodes[to];
    return pointwise(a) && pointwise(b) && graph_.values[a.first_output].type.shape == graph_.values[b.first_output].type.shape;
  }

  NodeId find(NodeId n) {
    while (group_[n] != n) n = group_[n] = group_[group_[n]];
    return n;
  }

  void join(NodeId n) {
    const Node& node = graph_.nodes[n];
    std::int32_t level = 0;
    for (ValueId v : graph_.after(node))
      if (const NodeId p = graph_.values[v].node; p != kNone) level = std::max(level, level_[p] + 1);
    for (ValueId v : graph_.inputs(node))
      if (const NodeId p = graph_.values[v].node; p != kNone) level = std::max(level, level_[p] + (fusable(p, n) ? 0 : 1));
    // All operands that this node reads on its own level belong to one group with it; otherwise the level would not keep groups
    // apart.
    std::vector<NodeId> with;
    std::int32_t nodes = 1;
    for (ValueId v : graph_.inputs(node)) {
      const NodeId p = graph_.values[v].node;
      if (p == kNone || level_[p] != level) continue;
      const NodeId first = find(p);
      if (std::find(with.begin(), with.end(), first) != with.end()) continue;
      with.push_back(first);
      nodes += size_[first];
    }
    if (nodes > most_) {
      level_[n] = level + 1;
      return;
    }
    level_[n] = level;
    with.push_back(n);
    const NodeId first = *std::min_element(with.begin(), with.end());
    for (NodeId g : with) group_[g] = first;
    size_[first] = nodes;
  }

  const Graph& graph_;
  const std::int32_t most_;
  std::vector<std::int32_t> level_;
  std::vector<NodeId> group_;       // union-find; the first node of a group stands for the group
  std::vector<std::int32_t> size_;  // by first node
};

}  // namespace

FusionGroups find_fusion_groups(const Graph& graph, std::int32_t most_nodes) { return Grouping(graph, most_nodes).run(); }

}  // namespace tapedeck
