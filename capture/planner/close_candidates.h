// Adds candidates to those of a small graph: for each candidate and each of its repeated runs, the plan without this run,
// unless another candidate is as good. So a budget gets no plan with a repeated run that the budget does not need.
//
//     cost  |  x                        x  candidates that no other beats, by placed peak and cost
//           |     x . . o               o  the second x without one of its runs: no candidate is as good, so it becomes one
//           |            x
//           +----------------- placed peak
//
// The strategy `search` does the same by live bytes. The placed peak of a plan may be larger than its live bytes, so the stage
// does it again by placed peaks.
#pragma once

#include <tapedeck/capture/planner/choose_candidate.h>

namespace tapedeck {

// Runs only if plans for budgets are looked for. The new candidates do not depend on a budget, and they do not lower the floor.
// The stage does nothing for graphs of more than 80 nodes, and it ends early after placing 100,000 values. Then a plan may keep
// a run that its budget does not need.
void close_candidates(const Limits& limits, Planning* planning);

}  // namespace tapedeck
