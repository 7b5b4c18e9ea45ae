// The independent judge of plans. It shares no code with the planner. It computes lifetimes, overlaps and happens-before again,
// from the graph, the segment DAG, the placements and the plans of the regions alone.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// One sentence per violation of Plan's invariants, empty if there is none. The plans of regions are judged too, at any depth; a
// sentence about one of them begins with the node and the region. Safe on plans from hostile files: every index is checked
// before use. Cost: O(values log values) where paths between segments are easily found, as they are in the planner's plans;
// else (segments + edges) words for every 64 segments whose paths are not.
std::vector<std::string> check_plan(const Plan& plan);

// Is `planned` a rearrangement of `captured` with marked clones: same inputs, state, outputs and updates, every captured node
// once, every clone equal in op, attributes and (recursively) operands to the node it names? Empty if so. Ignores nodes DCE and
// CSE removed.
std::vector<std::string> check_clones(const Plan& plan);

}  // namespace TAPEDECK_API
