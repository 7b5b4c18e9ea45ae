// The floating-point operations of a graph, with those of its loops and branches.
#pragma once

#include <tapedeck/engine/ir/graph.h>

namespace tapedeck::tool {

// FLOPs are what the ops declare; an op that declares none has none.
struct Flops {
  double step = 0;      // of one run of the graph, as far as it is known before the run
  double per_pass = 0;  // of one pass of each loop whose number of passes is known only in the run: `while` and its gradient
};

// Of a node with its regions. The region of a scan counts once for each pass. Of the branches of a `cond` the dearer one
// counts. The gradient of a loop counts each of its regions once for each pass, although its checkpoints may make it run the
// first one more often. A further op with regions counts its first region once: its other regions are not run with it.
Flops flops_of(const Graph& graph, const Node& node);

}  // namespace tapedeck::tool
