// The budget slider: whole steps between the floor (the least peak any strategy reaches) and the peak of keeping everything.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>

namespace tapedeck::viewer {

inline constexpr int kBudgetSteps = 1000;

struct BudgetScale {
  std::int64_t floor = 0, keep_all = 0;

  static BudgetScale of(const Plan& plan);
  // Step 0 is the floor, kBudgetSteps the keep-all peak, to the byte; in between the bytes grow evenly. REQUIRES 0 <= step <=
  // steps.
  std::int64_t bytes_at(int step) const;
  // The step nearest to a size; sizes outside the scale go to its ends.
  int step_of(std::int64_t bytes) const;
  double percent_of(std::int64_t bytes) const;  // of the keep-all peak
  std::int64_t bytes_of_percent(double percent) const;
};

}  // namespace tapedeck::viewer
