// The planner's plans of regions. A region of a loop or branch is planned by the same rules as a graph, with everything kept;
// beside this plan there may be plans in fewer bytes, which compute values again.
// The plans become part of the plan of the graph around them (Plan::region_plans), so readers of a plan do not need this file.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck {

// The plan of a region, made once for each region and kept as long as the region exists. A region that is the graph of a plan
// made here has that plan. Thread safe. Throws as make_plan.
std::shared_ptr<const Plan> plan_region(const Region& region);

// Plans of the region in fewer bytes than plan_region(), each in fewer bytes than the one before and none cheaper; empty if
// there are none. They are made once for each region and kept as long as the region exists. A region that is the graph of one
// of them has it as its plan_region(). Thread safe. Throws as make_plan.
std::vector<std::shared_ptr<const Plan>> plans_in_fewer_bytes(const Region& region);

// The workspace of every node of a graph that is about to be planned: by the kernels, and by plan_region for nodes with
// regions. Throws as plan_region.
std::vector<std::int64_t> node_workspaces(const Graph& graph);

// The graph, each region that runs by plan replaced with the graph of its plan: a region loses what the passes find superfluous
// in it.
Graph with_planned_regions(Graph graph);

// Gives the plan the plans of its regions (with_planned_regions, and Plan::region_plans with it), whatever it had before.
void plan_regions(Plan* plan);

}  // namespace tapedeck
