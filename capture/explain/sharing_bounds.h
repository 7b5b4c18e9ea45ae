// The bytes that each sharing rule saves in one graph: the bound and the peak of a plan with all rules, without each rule, and
// without any.
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
  std::int64_t tight_peak_bytes = 0;   // placed for one thread, whatever options.threads is; rules are compared by this peak
};

// Nothing is recomputed; `options` decide everything else. The first entry has all rules of options.sharing: it is `shown` if
// `shown` recomputes nothing, else the plan of make_plan() with Strategy::none. Then follow the entries without each of these
// rules, and the entry with none. With Ordering::recorded every entry has the recorded order. With Ordering::automatic an entry
// is the best of several orders, for bound and peak each: the order of the first entry, and, where this order is worse than the
// first entry, the orders that the searches of all entries found. A rule need not be used, so a result with fewer rules also
// counts for more rules: no entry is below an entry with more rules, except below the first entry, which stays as it is. If an
// entry is below the first, a second entry, "least found", holds the least result. Throws the errors of make_plan(). REQUIRES:
// shown is null or make_plan(captured, options). Costs a few placements, and at most a search for an order, per entry.
std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options = {}, const Plan* shown = nullptr);

}  // namespace TAPEDECK_API
