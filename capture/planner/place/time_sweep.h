// A placement in one sweep over time, like a run-time allocator with best fit: O(n log n), however many buffers are alive at
// once. It ends higher than the greedy orders, but takes little time.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>

namespace tapedeck {

// REQUIRES no fixed buffers. Holes are not used for other buffers.
Attempt place_by_sweep(const PlaceProblem& p);

}  // namespace tapedeck
