// Runs of nodes that are dispatched as one task.
//
// The rule. Starting a segment costs `dispatch_us`; a segment should be large enough that this is at most a fiftieth of its
// time, and no larger than `segment_us`, unless a single node is: replay can be cancelled between segments. For one thread the
// nodes are cut in their order. For several, the graph is also cut along its dependences, and in lanes (segment_pieces.h), at
// several grains between the two bounds; every cut is run by the clock of the model (simulate_run.h), and the one that is done
// first is taken; of those within a hundredth of it, the one with the fewest segments. Nodes that are never bulked stand alone.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/segments/simulate_run.h>

#include <optional>
#include <vector>

namespace tapedeck {

struct Cut {
  std::vector<Segment> segments;
  SegmentRule rule;
  SimulatedRun run;  // on options.threads threads
};

// Deterministic. Of the options, those about segments matter.
Cut cut_segments(const Graph& graph, const std::vector<double>& node_cost, const std::vector<Edge>& reuse_edges,
                 const PlanOptions& options);

// Nodes are cut into segments in three shapes: in their order ("walk"), along their dependences ("graph"), or in lanes. Returns
// the best cut of each shape that fits the options. The cut with the shortest simulated run comes first.
std::vector<Cut> cut_each_way(const Graph& graph, const std::vector<double>& node_cost, const std::vector<Edge>& reuse_edges,
                              const PlanOptions& options);

// The same segments when other bytes are used again; nothing if they would then wait for each other in a circle.
std::optional<Cut> with_reuse_edges(const Cut& cut, const Graph& graph, const std::vector<double>& node_cost,
                                    const std::vector<Edge>& reuse_edges, const PlanOptions& options);

// By node: may its kernel use threads that have nothing to run? Not where the simulated run keeps all threads busy with
// segments. Empty: all may.
std::vector<bool> choose_intra_op(const Cut& cut, const PlanOptions& options);

}  // namespace tapedeck
