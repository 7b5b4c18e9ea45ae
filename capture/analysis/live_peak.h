// The most bytes alive at once if a graph's nodes ran in their order, nothing were computed in place and every view were a
// window: what passes are measured by. A plan knows better; this costs one walk.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>

namespace tapedeck {

// Inputs, state and constants count all along, outputs and sources of updates until the end. Nested graphs count while their
// node runs: the largest of them, their inputs left out. O(nodes).
std::int64_t live_peak(const Graph& graph);

}  // namespace tapedeck
