// Ways to cut a graph into pieces that could run as one task each, without a circle among them.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/segments/precedence.h>

#include <optional>
#include <vector>

namespace tapedeck {

struct SegmentPiece {
  std::vector<NodeId> nodes;  // ascending
  double cost_us = 0;
  SegmentEnd end = SegmentEnd::last;
  Phase phase = Phase::forward;  // of the first node
  bool alone = false;            // never bulked
};

struct PieceRule {
  double least_us = 0;  // smaller pieces are put together
  double most_us = 0;   // a piece takes no more nodes once it would cost more than this
  bool split_phases = false;
};

// Is the node never bulked? Host callbacks, loops that make them, dynamic regions, copies between devices.
bool stands_alone(const Graph& graph, const Node& node);

// The nodes in their order, cut once a piece costs `most_us`. O(nodes).
std::vector<SegmentPiece> walk_pieces(const Graph& graph, const std::vector<double>& node_cost, const PieceRule& rule);

// Along the dependences. A node joins a piece that it reads from if no other piece reads that one yet (so no circle can arise)
// and all else that it reads is done before the piece starts (so the piece does not wait for it); else it opens a piece. Then
// small pieces are put together: with the only one they wait for, with the only one that waits for them, with others as deep in
// the graph. About O((nodes + edges) log nodes).
std::vector<SegmentPiece> grow_pieces(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence,
                                      const PieceRule& rule);

// The nodes in their order, dealt out to as many lanes as there are threads, each lane cut into pieces: a node joins its lane's
// piece under the same two conditions. Branches that were recorded side by side stay side by side in a lane, and their bytes
// can be used again as in one thread's walk: grow_pieces would run one branch after the other, and keep the first values of all
// of them. Then merged as above. About O((nodes + edges) log nodes + nodes x lanes).
std::vector<SegmentPiece> lane_pieces(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence,
                                      const PieceRule& rule, std::int32_t lanes);

// Numbered so that edges lead upwards, pieces with earlier nodes first; nothing if they wait for each other in a circle.
std::optional<std::vector<Segment>> make_segments(const Precedence& precedence, const std::vector<SegmentPiece>& pieces);

}  // namespace tapedeck
