// Who reads a value, and from when to when its bytes are needed.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// The readers of every value, in node order. A node that reads a value twice appears once. Order edges (`after`) are not
// counted.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  std::span<const NodeId> of(ValueId v) const {
    return {nodes_.data() + first_[v], static_cast<std::size_t>(first_[v + 1] - first_[v])};
  }
  NodeId last(ValueId v) const { return of(v).empty() ? kNone : of(v).back(); }

 private:
  std::vector<std::int32_t> first_;
  std::vector<NodeId> nodes_;
};

// Bytes needed during nodes birth..death, both included.
struct Interval {
  std::int64_t bytes = 0;
  NodeId birth = 0;
  NodeId death = 0;
};

// Sum of the bytes alive during each of `n_nodes` nodes.
std::vector<std::int64_t> sum_alive(const std::vector<Interval>& intervals, NodeId n_nodes);

}  // namespace tapedeck
