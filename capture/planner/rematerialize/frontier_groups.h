// Echo's test of what a recomputation keeps alive. Values that are computed again are made from stored values; a stored value
// that backward does not read itself is kept for them alone. The nodes that read stored values only are the *frontier*, and
// frontier nodes that share a stored operand form a *group*. To store the results of a group instead
//
//     %p -> add --> %s -> tanh -> ...          allocates its results that anyone reads again: %s
//     %q --^                                   releases operands that are stored for the group alone: %p and %q
//
// gains if at least as many bytes are released as are allocated. Then the group is not computed again. An operand that others
// read too, or backward itself, stays stored either way and counts on neither side.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

#include <vector>

namespace tapedeck {

// Takes the nodes of such groups off `mirrored`, group after group, until none is left. `later_readers`: by root, kNever for a
// value that backward does not read. Near linear: each node enters the frontier once and leaves it once.
void store_groups_without_gain(const Facts& facts, const std::vector<NodeId>& later_readers, std::vector<char>* mirrored);

}  // namespace tapedeck
