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
// The stage does nothing for graphs of more than 80 nodes. It ends early after placing 100,000 values, and it searches the
// offsets of at most 64 plans. Beyond that, a plan may keep a run that its budget does not need. So may a plan whose clones
// were moved among the nodes: without a run, it is tried where its order has the clones.
void close_candidates(const Limits& limits, Planning* planning);

// Whether the stage does anything in this graph.
bool closes_candidates(const Planning& planning);

}  // namespace tapedeck
