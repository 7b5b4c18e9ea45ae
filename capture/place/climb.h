// Search for a lower end than greedy orders give, by ejection: below the end of the best placement a target is set; what reaches above it is
// taken out, and put back one by one where the least is in the way, which is taken out in turn. What was hard to put back weighs more from
// then on, so that the next time others give way. After Nagata and Braysy's ejection pools for vehicle routing (2009) and the breakout
// weights of local search for constraints (Morris, 1993); order climbing as TVM does it stays behind this on every instance tried.
#pragma once

#include <tapedeck/capture/place/fit.h>

#include <cstdint>

namespace tapedeck {

// Makes *best (a whole placement of p) end lower, if it finds how within `work` examined buffers. Whether it did. Equal arguments, equal
// answer. Needs 4 bytes for every pair of buffers that are alive together (and does nothing beyond 2^27 of those): O(work) time.
bool climb(const PlaceProblem& p, std::int64_t work, std::uint64_t seed, Attempt* best);

}  // namespace tapedeck
