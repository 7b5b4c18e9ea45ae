// Marks of the program (keep() and recompute() in engine/eager/checkpoint.h) in passes. A pass that makes a node in the place
// of another gives it the other's Origin, and so its mark. A pass that lets readers of a node read an existing value instead
// hands the mark on to the node that makes that value.
#pragma once

#include <tapedeck/engine/ir/graph.h>

namespace tapedeck {

// Marks the maker of v, unless it has a mark of its own. Does nothing for an input, a state value or NodeWish::none.
inline void hand_on_mark(NodeWish mark, ValueId v, Graph* graph) {
  const NodeId maker = graph->values[v].node;
  if (maker == kNone) return;
  NodeWish& of_maker = graph->nodes[maker].origin.wish;
  if (of_maker == NodeWish::none) of_maker = mark;
}

}  // namespace tapedeck
