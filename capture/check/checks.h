// The parts of check_plan(). Each appends one sentence for each violation. A later part relies on the facts that earlier parts
// checked.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <string>
#include <vector>

namespace tapedeck {

using Violations = std::vector<std::string>;

// The list of sentences ends here, so that a hostile plan cannot fill the memory.
inline constexpr std::size_t kMostViolations = 100;

// Every index in the plan is in range, so that the parts below may use it, and the sums of bytes agree.
void check_structure(const Plan& plan, Violations* out);

// Invariant (5): each region has a plan of this very region, and check_plan() finds nothing wrong with it. REQUIRES:
// check_structure found nothing.
void check_regions(const Plan& plan, Violations* out);

// Invariants (2) and (3) for each value by itself: it lies in the right buffer, inside it, and aligned; windows and takeovers
// are those that the ops allow; each node has the workspace that it needs. REQUIRES: check_structure and check_regions found
// nothing.
void check_placements(const Plan& plan, Violations* out);

// Birth, death and reader of each value agree with the graph. Pictures, explanations and live_bytes() use them. REQUIRES:
// check_structure found nothing.
void check_lifetimes(const Plan& plan, Violations* out);

// By value: for a window (of a window ...) the value whose bytes it looks at, for a part (of a part ...) the value in which it
// lies. REQUIRES: check_structure found nothing.
std::vector<ValueId> bytes_owner(const Plan& plan);

// Invariants (1) and (3) between values: under every order that the segments allow, no node writes bytes that another node
// still needs. REQUIRES: check_placements found nothing.
void check_order(const Plan& plan, Violations* out);

}  // namespace tapedeck
