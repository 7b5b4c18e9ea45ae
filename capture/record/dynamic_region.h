// Nodes that depend on a count that only a run knows move into one node, which runs unplanned.
//
//     %rows: f32[2,3] = gather_nd(%x, nonzero(%mask))        %s: f32[] = dynamic(%x, %mask)
//     %sq: f32[2,3] = mul(%rows, %rows)                becomes    (%x: f32[3,3], %mask: bool[3]) { nonzero, gather_nd, mul, sum
//     } %s: f32[] = sum(%sq)
//
// A node moves if the type of an operand or of a result changes with the count; inference is asked twice with other counts to
// find out. Nodes between two such nodes move too, so that the group is convex. The types of the operands and results of the
// group do not change with the count. The types inside are those for masks whose elements all hold, so recordings with
// different counts are equal. Cost: three inferences of the graph.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct DynamicGraph {
  Graph graph;
  std::vector<std::int64_t> counts;  // by counted node, as recorded
  // Not empty if an attribute or a constant holds a count, one over it, or a number of elements that follows from it. The
  // author's code may have computed it from the count, and only a recording with another count can show that it did not.
  std::string suspicion;
};

// `counted`: the nodes whose count was read from their operand while recording. Throws CaptureError that names op, place and
// remedy: if a value whose size depends on a count leaves the group (is returned or stored), if a shape works at one count
// alone, or if the group would change the order of effects.
DynamicGraph with_dynamic_region(const Graph& graph, const std::vector<NodeId>& counted);

}  // namespace TAPEDECK_API
