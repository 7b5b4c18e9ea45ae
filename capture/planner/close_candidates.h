// Closes the candidates of small graphs: whatever run a candidate can do without is a candidate too, or one that is as good is.
// So no budget gets a plan with a run that it has room to leave out.
//
//     cost  |  x                        x  candidates that no other beats, by placed peak and cost
//           |     x . . o               o  the second x without one of its runs: no candidate is as good, so it becomes one
//           |            x
//           +----------------- placed peak
//
// The strategy `search` closes its plans in live bytes. Offsets lose some bytes here and there, so the plan that a budget gets
// may be another one than live bytes promise.
#pragma once

#include <tapedeck/capture/planner/choose_candidate.h>

namespace tapedeck {

// The stage, where budgets are looked for. Its candidates depend on no budget, and they do not lower the floor. It does nothing
// for large graphs, and ends early where there is much to place; then some plan may keep a run that it could do without.
void close_candidates(const Limits& limits, Planning* planning);

}  // namespace tapedeck
