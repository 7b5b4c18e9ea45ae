// The most bytes alive at once if the nodes ran in their order, computed nothing in place, and made every view a window. Passes
// are measured by this number. A plan knows the peak more exactly; this is one walk.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>

namespace tapedeck {

// Inputs, state and constants count all the time; results and sources of updates count until the end. Nested graphs count while
// their node runs: the largest of them, without its inputs. O(nodes).
std::int64_t live_peak(const Graph& graph);

}  // namespace tapedeck
