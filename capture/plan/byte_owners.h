// In whose bytes a value lies, as the plan says it. Live bytes, pictures, explanations, traces and poison use it. The checker
// works it out by itself (check/checks.h).
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/plan/plan.h>

#include <vector>

namespace tapedeck {

// By value: for a window (of a window ...) the value whose bytes it looks at, for a part (of a part ...) the value in which it
// lies, for every other value itself, also if it is computed in place. O(values). Plans that are not sound are allowed: a value
// that refers to no value is its own owner, and circles end.
std::vector<ValueId> byte_owners(const Plan& plan);

// By value: the first value that had the bytes, through takeovers too. A takeover hands bytes on, so the bytes of a holder are
// needed from its birth to the last death of any value that it holds.
std::vector<ValueId> byte_holders(const Plan& plan);

// When bytes of the arena are held: an interval for each holder that some node writes, then one interval for each workspace.
// They add up to live_bytes().
std::vector<Interval> held_in_arena(const Plan& plan);

}  // namespace tapedeck
