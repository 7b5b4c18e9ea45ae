// The selected and the hovered value. All panels share one Selection. A value is selected together with its producer and with
// all copies of it that the plan makes.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <vector>

namespace tapedeck::viewer {

// Nodes one after another, from first to last; kNone: none.
struct NodeRange {
  NodeId first = kNone, last = kNone;

  bool empty() const { return first == kNone; }
  bool operator==(const NodeRange& o) const { return first == o.first && last == o.last; }
};

// The selection. Ids belong to the plan that is shown.
struct Selection {
  ValueId value = kNone;
  NodeId node = kNone;
  ValueId hovered = kNone;
  std::vector<ValueId> copies;  // of `value`, itself among them; empty without one. The session sets them.

  void clear() { *this = Selection{}; }
  void select_value(const Graph& graph, ValueId v) {
    if (v < 0 || v >= graph.value_count()) return clear();
    value = v;
    node = graph.values[v].node;
  }
  void select_node(const Graph& graph, NodeId n) {
    if (n < 0 || n >= graph.node_count()) return clear();
    node = n;
    const Node& record = graph.nodes[n];
    value = record.n_outputs > 0 ? record.first_output : kNone;
  }
};

}  // namespace tapedeck::viewer
