// A placement in one sweep over time, as an allocator at run time makes it that gives the tightest gap: O(n log n), whatever is
// alive at once. Ends higher than what greedy orders find, but is there at once.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>

namespace tapedeck {

// Not for fixed buffers. Holes are not made use of.
Attempt place_by_sweep(const PlaceProblem& p);

}  // namespace tapedeck
