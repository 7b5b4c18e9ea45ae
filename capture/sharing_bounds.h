// What each rule of sharing bytes earns in one graph: a plan's bound and peak with all rules, without each, and without any.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/capture/planner.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

const char* sharing_name(Sharing rule);    // of one rule: "windows" "in_place" "add_to" "parts" "updates"; else "all", "none" or ""

struct SharingBound {
  std::string rules;                       // "all", "without windows", ..., "none"
  Sharing sharing = Sharing::all;
  std::int64_t lower_bound_bytes = 0;      // most bytes alive at once, inputs, state, constants and outputs counted
  std::int64_t peak_bytes = 0;             // placed, for options.threads
};

// Nothing is recomputed, and `options` say all else. First with all rules that options.sharing has: that is `shown` if it recomputes nothing, else
// what make_plan() makes with Strategy::none. Then without each of these rules, then with none. With Ordering::recorded all stand in that order;
// with automatic every entry but the first is the least of: its own search for an order, the order that each of the others was found, and what was
// found for fewer rules. So a difference is what the rules do, and not which order happened to be met. Throws what make_plan() throws.
// REQUIRES: shown is null or make_plan(captured, options). Costs a search for an order and a few placements per entry.
std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options = {}, const Plan* shown = nullptr);

}  // namespace tapedeck
