// From a captured graph to a plan, step by step. planner.cpp decides which candidate to plan; this is what happens to it.
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/rematerialize/rematerialize.h>

#include <optional>

namespace tapedeck TAPEDECK_API {

// Without what is dead, known or computed twice: every pass that changes no bit, in the order that suits them (fast_math if the
// runner has it).
Graph simplify(Graph graph, PassRunner* passes);

// Verified, named, without what is dead, known or computed twice, and with the copies that updates and outputs need. Of the
// sharing rules add_to and updates show here.
Graph prepare(const Graph& captured, PassRunner* passes, Sharing sharing = Sharing::all);

// The whole plan of a prepared graph with these clones, which cost this much with all else; but for what depends on other
// candidates (floor, budget, decisions). `laid_out`: its layout, if that is known.
Plan finish_plan(const Facts& facts, ClonedGraph cloned, double cost_us, const PlanOptions& options, PassRunner* passes,
                 std::optional<Layout> laid_out = std::nullopt);

// Model cost of all nodes, and of every run of them but the first, added in schedule order, so that equal schedules have equal
// costs to the last bit, and moving a node costs nothing.
double schedule_cost(const Facts& facts, const RunLists& runs);

}  // namespace TAPEDECK_API
