// Order between nodes that the data does not give, and the runs of nodes that are dispatched as one task.
#pragma once

#include <tapedeck/capture/layout.h>
#include <tapedeck/capture/plan.h>

#include <vector>

namespace tapedeck {

// Whenever bytes change hands (reuse of the arena, a takeover in place, an overwritten state buffer), whoever read the old
// bytes must have finished before the new ones are written. Only edges that no operand or order edge between the two nodes
// implies, ascending.
std::vector<Edge> find_reuse_edges(const Graph& graph, const Layout& layout);

// Contiguous runs, closed once they cost `segment_us`; a node with an effect stands alone. Edges between segments follow
// operands, order edges and reuse edges, and lead from earlier to later ones.
std::vector<Segment> cut_segments(const Graph& graph, const std::vector<double>& node_cost,
                                  const std::vector<Edge>& reuse_edges, double segment_us);

}  // namespace tapedeck
