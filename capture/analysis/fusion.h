// Which pointwise nodes could be one kernel: groups of elementwise nodes over one iteration space that hand values to each
// other.
//
//     %a = exp(%x); %b = sum(%a); %c = neg(%a); %d = add(%c, %y)      a, c and d are a group; b is none of it, but reads it
//
// `tapedeck print --planned` shows the groups. The pass `fuse` (passes/fuse.cpp) takes runs of nodes out of them.
//
// Groups are convex: no path leads out of a group and back into it, so each group can run as one node. Every node gets a level.
// It is the highest of these: the level of each operand that the node could be fused with, and one more than the level of every
// other operand and of every node that it is ordered after. The node joins the groups of those fusable operands that are on its
// own level; if that group would be too large, the node goes one level up, alone. A path that leaves a group therefore climbs
// and cannot come back. (Schedulers of tensor compilers order kernels by the same idea. It is one walk, not a
// search for cycles.)
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct FusionGroups {
  std::vector<std::int32_t>
      of_node;  // group of the node, kNone if it is alone; groups count from 0 in order of their first nodes
  std::int32_t count = 0;
};

// `most_nodes` bounds a group. O(nodes and operands).
FusionGroups find_fusion_groups(const Graph& graph, std::int32_t most_nodes = 64);

}  // namespace TAPEDECK_API
