// Chooses a candidate of a graph that has too many nodes to place every candidate. The ladder is a list of candidates. Each
// keeps fewer bytes alive than every cheaper candidate:
//
//     cost         12   13   15      19   24        the cheapest comes first, and the one at the floor last
//     live bytes   90   80   70      60   50
//     placed       -    no   fits?   -    -         the choice halves the ladder until one is left
//
// The ladder does not depend on the budget, and a candidate that fits a budget fits every larger budget. So a larger budget
// never ends at a dearer candidate.
#pragma once

#include <tapedeck/capture/planner/choose_candidate.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Whether the graph has so many nodes that the choice uses a ladder.
bool places_few_candidates(const Planning& planning);

// The ladder of the candidates that are allowed. Empty if the candidate at the floor is not allowed. `floor`: Limits::floor.
// REQUIRES: `allowed` answers the same for every budget; find_limits() was called.
std::vector<Candidate*> ladder_to_floor(std::int64_t floor, const Allowed& allowed, Planning* planning);

// Returns a cheap candidate that fits the budget, or null if the budget is below the floor. The candidate is on the ladder, or
// its layout was searched before any budget was known. REQUIRES: the ladder has a candidate.
Candidate* cheapest_on_ladder(const std::vector<Candidate*>& ladder, std::int64_t budget, std::int64_t floor,
                              const Allowed& allowed, Planning* planning);

}  // namespace tapedeck
