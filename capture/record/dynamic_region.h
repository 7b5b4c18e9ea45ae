// What depends on a count that only a run knows, gathered into one node that runs unplanned.
//
//     %rows: f32[2,3] = gather_nd(%x, nonzero(%mask))        %s: f32[] = dynamic(%x, %mask)
//     %sq: f32[2,3] = mul(%rows, %rows)                becomes    (%x: f32[3,3], %mask: bool[3]) { nonzero, gather_nd, mul, sum
//     } %s: f32[] = sum(%sq)
//
// In: the nodes whose operands or results change their type if the count does (inference is asked twice, with other counts),
// and whatever stands between two of them, so that the group is convex. Its operands and results have types that no count
// changes. The region is written down with counts as if every element of each mask held, so that recordings with different
// counts are equal. Cost: three inferences of the graph.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct DynamicGraph {
  Graph graph;
  std::vector<std::int64_t> counts;  // as recorded, by counted node
  // Empty, or an attribute or constant that holds a count, one over it, or a number of elements that follows from it: it may
  // have been computed from the count by the author's code, and only a recording with another count can show that it was not.
  std::string suspicion;
};

// `counted`: nodes whose count was read from their operand while recording. Throws CaptureError naming op, place and what to do
// for a value whose size depends on a count and that leaves the group (returned, stored), for a shape that works at one count
// alone, and where grouping would change the order of effects.
DynamicGraph with_dynamic_region(const Graph& graph, const std::vector<NodeId>& counted);

}  // namespace TAPEDECK_API
