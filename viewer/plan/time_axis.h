// The axis of time of the pictures: it counts nodes, or the microseconds that the nodes take by the cost model. A position is a
// place on the axis. A node may be a fraction: 2.5 is the middle of node 2.
//
//     nodes           |  0  |  1  |  2  |  3  |        position = node
//     microseconds    |      0      | 1 || 3 |         a node is as wide as it takes long; node 2 takes no time, so it has no
//                                                      width, and what lives only then is drawn one pixel wide
//
// The positions are exact: the axis ends at the cost of the plan. Immutable, so any thread may read it.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/viewer/plan/view.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

enum class TimeUnit : std::uint8_t { nodes, us };

class TimeAxis {
 public:
  TimeAxis() = default;  // counts nodes, of a plan of any length
  // `node_us`: microseconds by node, finite and >= 0. If no node takes any time, the axis counts nodes. O(nodes).
  explicit TimeAxis(const std::vector<double>& node_us);

  TimeUnit unit() const { return starts_.empty() ? TimeUnit::nodes : TimeUnit::us; }
  // The position of a node. Nodes before the first and after the last are taken for these ends. O(1).
  double at(double node) const;
  // The node that runs at a position; of nodes that begin there, the one that takes time. O(log nodes).
  double node_at(double position) const;
  // The nodes that begin in [low, high) or run at `low`: [first, second). At least one, if there are any in a plan of `nodes`
  // nodes. Neighbouring intervals leave no node out, whether it takes time or not.
  std::pair<NodeId, NodeId> nodes_in(double low, double high, NodeId nodes) const;
  Range range_of(const Range& nodes) const { return {at(nodes.low), at(nodes.high)}; }
  Range nodes_of(const Range& positions) const { return {node_at(positions.low), node_at(positions.high)}; }
  // The shortest stretch that a picture may show: one node, or the millionth part of the whole step.
  double least_size() const { return starts_.empty() ? 1 : starts_.back() * 1e-6; }

 private:
  std::vector<double> starts_;  // by node, and one more: the end of the step; empty: nodes
};

}  // namespace tapedeck::viewer
