// How many bytes a loop keeps for its backward, as a choice of the planner.
//
// The node loop_grad runs its loop again and keeps carried values on a tape, which lies in its workspace. A tape with fewer
// entries costs runs of passes. For a loop of 64 passes that was recorded with checkpoint_every = 1:
//
//     checkpoint    entries on the tape    passes run again
//              1                     66                   0        the recorded interval, which every plan without a budget has
//              2                     34                  31
//              4                     20                  45
//              8                     16                  49
//            log                      9                 more
//
// A scan without checkpoints keeps stacks of values, which are ordinary values of the graph. It can keep fewer of them, or none
// at all and have a loop_grad as its backward (rerun_scan.h).
//
// Each way is the same program in another graph. So it enters the planning as an order of its own, with its own workspaces and
// costs, and the choice among candidates decides.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck {

struct Planning;

// The stage: for the recorded order, and for the order that keeps the fewest bytes alive, adds orders in which loops keep fewer
// bytes. Loops whose bodies have effects, and loops without a bound on their passes, keep what was recorded. REQUIRES:
// find_orders.
void add_loop_intervals(Planning* planning);

// Why the planner leaves what this node reads of its loop as it is, in words that go on from "%loop "; empty if it may choose,
// or if the node is neither a loop_grad nor the backward of a scan.
TAPEDECK_API std::string why_interval_stays(const Graph& graph, NodeId node);

}  // namespace tapedeck
