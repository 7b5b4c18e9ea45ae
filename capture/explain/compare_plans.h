// What differs between two plans: their figures, the values that they recompute, and where they put each value.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct PlanDifference {
  std::string name;  // of a figure ("peak_bytes") or of a value
  std::string a, b;  // empty: it is not in this plan
};

struct PlanComparison {
  std::vector<PlanDifference> figures;     // those that differ; how long planning took does not count
  std::vector<PlanDifference> recomputed;  // values that one of the plans recomputes
  std::int32_t placed = 0;                 // values of one name in both planned graphs
  std::vector<PlanDifference> placements;  // of these: those that lie elsewhere, "arena 2560, saved", in the order of A

  bool equal() const { return figures.empty() && recomputed.empty() && placements.empty(); }
};

// O(values).
PlanComparison compare_plans(const Plan& a, const Plan& b);

}  // namespace TAPEDECK_API
