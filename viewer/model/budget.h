// The scale of the budget slider: whole steps between the floor (the least peak that any strategy reaches) and the peak of the
// plan that keeps everything. All sizes are bytes.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>

namespace tapedeck::viewer {

inline constexpr int kBudgetSteps = 1000;

// Converts between steps of the slider, bytes and percent.
struct BudgetScale {
  std::int64_t floor = 0, keep_all = 0;

  // The first plan of a large graph knows no floor (floor_bytes is 0). The scale then begins at the external bytes, which every
  // plan holds.
  static BudgetScale of(const Plan& plan);
  // Step 0 is exactly the floor, and step kBudgetSteps exactly the keep-all peak; the steps between grow evenly.
  // REQUIRES 0 <= step <= kBudgetSteps.
  std::int64_t bytes_at(int step) const;
  // The step nearest to a size. A size outside the scale gives the first or the last step.
  int step_of(std::int64_t bytes) const;
  double percent_of(std::int64_t bytes) const;  // in percent of the keep-all peak
  std::int64_t bytes_of_percent(double percent) const;
};

}  // namespace tapedeck::viewer
