// The parts of check_plan(). Each appends one sentence per violation; later parts rely on what earlier ones found sound.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <string>
#include <vector>

namespace tapedeck {

using Violations = std::vector<std::string>;

// A list this long says enough; a hostile plan must not fill the memory with sentences.
inline constexpr std::size_t kMostViolations = 100;

// Every index in the plan is in range, so that the parts below may use them; and the sums of bytes agree.
void check_structure(const Plan& plan, Violations* out);

// Invariant (5): each region has a plan, of this very region, that check_plan() finds nothing wrong with. REQUIRES:
// check_structure found nothing.
void check_regions(const Plan& plan, Violations* out);

// Invariants (2) and (3) for each value by itself: the right buffer, inside it, aligned; windows and takeovers as their ops
// allow; and the workspace that each node needs. REQUIRES: check_structure and check_regions found nothing.
void check_placements(const Plan& plan, Violations* out);

// Birth, death and reader of each value are as the graph has them: what pictures, explanations and live_bytes() go by.
// REQUIRES: check_structure found nothing.
void check_lifetimes(const Plan& plan, Violations* out);

// By value: the value whose own bytes a window (of a window ...) looks at, and a part (of a part ...) lies in. REQUIRES:
// check_structure found nothing.
std::vector<ValueId> bytes_owner(const Plan& plan);

// Invariants (1) and (3) between values: under every order that the segments allow, nobody writes bytes that somebody still
// needs. REQUIRES: check_placements found nothing.
void check_order(const Plan& plan, Violations* out);

}  // namespace tapedeck
