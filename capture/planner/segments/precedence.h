// Which node must have finished before which other node: operands, order edges, reuse edges, and effects in the order of the
// program. Constants are there before a run begins, so nobody waits for them.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

class Precedence {
 public:
  // Every edge leads from a node to a later one. O(nodes + edges).
  Precedence(const Graph& graph, const std::vector<Edge>& reuse_edges);

  // The nodes that `n` waits for, ascending, each once.
  std::span<const NodeId> before(NodeId n) const {
    return {nodes_.data() + first_[n], static_cast<std::size_t>(first_[n + 1] - first_[n])};
  }
  NodeId node_count() const { return static_cast<NodeId>(first_.size()) - 1; }

 private:
  std::vector<NodeId> nodes_;
  std::vector<std::int64_t> first_;  // by node
};

// Microseconds of the longest path.
double critical_path(const Precedence& precedence, const std::vector<double>& node_cost);

}  // namespace tapedeck
