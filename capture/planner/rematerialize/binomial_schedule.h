// Which states of a chain to keep while it is reversed with few slots (Griewank and Walther 2000, Algorithm 799, revolve).
//
// A chain of `steps` steps is reversed from its start, which fills one of `slots` slots. The way forward stops once, after
// first_stop() steps, to fill a further slot; the steps behind are reversed from there, and then the steps before from the
// start:
//
//     start --m steps--> slot --reverse steps - m with slots - 1-->   and then   start --reverse m with slots-->
//
// No other way runs fewer steps forward. All of these are closed formulas of the binomial numbers C(slots + r, slots).
#pragma once

#include <cstdint>

namespace tapedeck {

// The fewest runs of steps forward with which `steps` steps are reversed; the run of a step just before its own reversal is not
// counted. REQUIRES: steps >= 1, slots >= 1.
std::int64_t fewest_forward_runs(std::int64_t steps, std::int64_t slots);

// The number of steps to the next slot. REQUIRES: steps >= 2, slots >= 2. 1 <= result < steps.
std::int64_t first_stop(std::int64_t steps, std::int64_t slots);

}  // namespace tapedeck
