// The choice of a candidate where there are too many nodes to place every candidate that may fit. A ladder has the candidates
// that keep fewer bytes alive than every cheaper one:
//
//     cost         12   13   15      19   24        the cheapest comes first, and the one at the floor last
//     live bytes   90   80   70      60   50
//     placed       -    no   fits?   -    -         for a budget, the ladder is halved again and again
//
// The ladder does not depend on the budget, and a candidate that fits a budget fits every larger budget. So a larger budget
// never ends at a dearer candidate.
#pragma once

#include <tapedeck/capture/planner/choose_candidate.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Whether the graph has so many nodes that a ladder is used.
bool places_few_candidates(const Planning& planning);

// The ladder of the candidates that are allowed. Empty if the candidate at the floor is not allowed. `floor`: Limits::floor.
// REQUIRES: `allowed` answers the same for every budget; find_limits() was called.
std::vector<Candidate*> ladder_to_floor(std::int64_t floor, const Allowed& allowed, Planning* planning);

// A cheap candidate that fits the budget: of the ladder, or one whose layout was searched before any budget was known. Null if
// the budget is below the floor. REQUIRES: the ladder has a candidate.
Candidate* cheapest_on_ladder(const std::vector<Candidate*>& ladder, std::int64_t budget, std::int64_t floor,
                              const Allowed& allowed, Planning* planning);

}  // namespace tapedeck
