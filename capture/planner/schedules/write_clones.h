// From a schedule with repeated runs to a graph: each node's first run is the node itself, and the others become its clones.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/schedule.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <vector>

namespace tapedeck TAPEDECK_API {

// By stage, ascending: the nodes that run in it (schedule.h).
using RunLists = std::vector<std::vector<NodeId>>;

// A graph with clones in place, and the node of the original graph that each of its nodes is or repeats.
struct ClonedGraph {
  Graph graph;
  std::vector<NodeId> source;
  std::vector<char> late = {};  // by node: the first run of its source, and later than where the source stands; empty: none is
};

// Writes the runs out. A node's first run keeps the node's name. Windows are made again where their root was made again. A node
// that runs later than recorded, clone or not, gets an order edge to the node before its stage, so that it runs just in time
// and not as soon as its operands allow.
ClonedGraph clone_graph(const Facts& facts, const RunLists& runs);

// The runs before any step: every node in its own stage.
RunLists runs_as_recorded(const Facts& facts);

// Applies steps first..last-1 of a journal to the lists.
void apply_steps(const std::vector<Step>& journal, std::size_t first, std::size_t last, RunLists* runs);

// The runs after the first `steps` steps of a journal.
RunLists runs_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps);

// The cost of all nodes, and of every run of them but the first, added in the order of the schedule, so that equal schedules
// have equal costs to the last bit, and moving a node costs nothing.
double schedule_cost(const Facts& facts, const RunLists& runs);

}  // namespace TAPEDECK_API
