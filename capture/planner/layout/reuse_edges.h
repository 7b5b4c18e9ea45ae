// Order between nodes that the data does not give: whenever bytes change hands (reuse of the arena, a takeover in place, an
// overwritten state buffer), all readers of the old bytes must have finished before the new bytes are written.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/layout/layout.h>

#include <vector>

namespace tapedeck {

// Only edges that no operand or order edge between the two nodes implies, ascending; each leads from a node to a later one.
std::vector<Edge> find_reuse_edges(const Graph& graph, const Layout& layout);

// Those alone that any placement needs: the readers of a state value's old bytes before the node that overwrites them.
std::vector<Edge> find_update_edges(const Graph& graph, const Layout& layout);

}  // namespace tapedeck
