// Whose bytes a value lies in, as the plan says it: what live bytes, pictures, explanations, traces and poison go by. The
// checker finds it out by itself (check/checks.h).
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/plan/plan.h>

#include <vector>

namespace tapedeck {

// By value: the value whose own bytes a window (of a window ...) looks at and a part (of a part ...) lies in; all others are
// their own, those computed in place too. O(values), for plans that are not sound as well: what refers nowhere is its own, and
// circles end somewhere.
std::vector<ValueId> byte_owners(const Plan& plan);

// By value: the first to have the bytes, through takeovers too. A takeover hands bytes on, so those of one holder are needed
// from its birth to the last death of any that it holds for.
std::vector<ValueId> byte_holders(const Plan& plan);

// When bytes of the arena are held: an interval for each holder that some node writes, then one for each workspace. Sums to
// live_bytes().
std::vector<Interval> held_in_arena(const Plan& plan);

}  // namespace tapedeck
