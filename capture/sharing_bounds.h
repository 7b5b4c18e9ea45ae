// What each rule of sharing bytes earns in one graph: the plan's bounds with all rules, without each, and without any.
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
  std::int64_t peak_bytes = 0;             // placed
};

// Nothing is recomputed, and `options` say all else: with Ordering::recorded all stand in one order, with automatic each in the order that is best
// for it. First with all rules that options.sharing has, then without each of these, then with none. Throws what make_plan() throws. Costs as
// many plans without a floor as there are entries.
std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options = {});

}  // namespace tapedeck
