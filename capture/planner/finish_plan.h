// The last stage of planning: segments, and everything that a plan says of itself.
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <optional>

namespace tapedeck TAPEDECK_API {

// The whole plan of a prepared graph with these clones, which cost this much with all else; but for what depends on other
// candidates (floor, budget, decisions). `laid_out`: its layout, if that is known.
Plan finish_plan(const Facts& facts, ClonedGraph cloned, double cost_us, const PlanOptions& options, PassRunner* passes,
                 std::optional<Layout> laid_out = std::nullopt);

}  // namespace TAPEDECK_API
