// The independent judge of plans. Shares no code with the planner: it recomputes lifetimes, overlaps and happens-before from the
// graph, the segment DAG and the placements alone.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/capture/plan.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// One sentence per violation of Plan's invariants, empty if there is none. Safe on plans from hostile files: every index is checked
// before use. Cost: O(values log values) where paths between segments are easily found, as in
// plans they are; else (segments + edges) words for every 64 segments whose paths are not.
std::vector<std::string> check_plan(const Plan& plan);

// Is `planned` a rearrangement of `captured` with marked clones: same inputs, state, outputs and updates, every captured node once,
// every clone equal in op, attributes and (recursively) operands to the node it names? Empty if so. Ignores nodes DCE and CSE removed.
std::vector<std::string> check_clones(const Plan& plan);

}  // namespace tapedeck
