// The independent judge of plans. It shares no code with the planner. It computes lifetimes, overlaps and happens-before again,
// from the graph, the segment DAG, the placements and the plans of the regions alone.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// One sentence for each violation of the invariants of Plan; empty if there is none. The plans of regions are judged too, at
// any depth; a sentence about a region begins with the node and the region. Plans from hostile files are safe: every index is
// checked before use. Cost: O(values log values) if paths between segments are easy to find, as in the planner's plans;
// otherwise (segments + edges) words for every 64 segments whose paths are hard to find.
std::vector<std::string> check_plan(const Plan& plan);

// Whether each clone in the plan computes the value of the node that it names: the same op, attributes and (recursively)
// operands, and no effect. Also whether the plan counts its nodes and clones correctly, and whether no result of the graph
// comes from a clone. One sentence for each violation.
std::vector<std::string> check_clones(const Plan& plan);

}  // namespace TAPEDECK_API
