// From a captured graph to a Plan: prepare, wish, order, rematerialize, choose, place, segment, check.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

// A plan that fits, or one with feasible == false that is the best found and says why. Never throws for want of memory; throws
// UsageError for bad options and InvalidGraphError for a graph that does not verify. Deterministic: equal graph and options,
// equal plan but for solve_ms. Monotone: a larger budget never gives a higher recompute cost, and peak_bytes <= budget always.
Plan make_plan(const Graph& graph, const PlanOptions& options = {});

}  // namespace TAPEDECK_API
