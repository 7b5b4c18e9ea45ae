// What each rule of sharing bytes earns in one graph: a plan's bound and peak with all rules, without each, and without any.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

const char* sharing_name(
    Sharing rule);  // of one rule: "windows" "in_place" "add_to" "parts" "updates"; else "all", "none" or ""

struct SharingBound {
  std::string rules;  // "all", "least found", "without windows", ..., "none"
  Sharing sharing = Sharing::all;
  std::int64_t lower_bound_bytes = 0;  // most bytes alive at once, inputs, state, constants and outputs counted
  std::int64_t peak_bytes = 0;         // placed for options.threads
  std::int64_t tight_peak_bytes = 0;   // placed for one thread, whatever the threads: what rules are compared by
};

// Nothing is recomputed, and `options` say all else. First with all rules that options.sharing has: that is `shown` if it
// recomputes nothing, else what make_plan() makes with Strategy::none. Then without each of these rules, then with none. With
// Ordering::recorded all stand in that order. With automatic an entry is the least of several orders, bound and peak each: that
// of the first entry; where this does not make it as good as the first entry, that of a search of its own, and those of the
// other entries' searches. Nobody has to use a rule, so what is found for fewer rules counts for more: no entry is below one
// with more rules, but for the first, which is what it is; if any is below that, a second entry, "least found", says so. Throws
// what make_plan() throws. REQUIRES: shown is null or make_plan(captured, options). Costs a few placements, and at most a
// search for an order, per entry.
std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options = {}, const Plan* shown = nullptr);

}  // namespace TAPEDECK_API
