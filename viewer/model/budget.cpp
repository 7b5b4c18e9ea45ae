#include <tapedeck/viewer/model/budget.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

BudgetScale BudgetScale::of(const Plan& plan) {
  BudgetScale scale;
  scale.keep_all = plan.keep_all_peak_bytes > 0 ? plan.keep_all_peak_bytes : plan.peak_bytes;
  scale.floor = std::min(plan.floor_bytes > 0 ? plan.floor_bytes : plan.external_bytes, scale.keep_all);
  return scale;
}

std::int64_t BudgetScale::bytes_at(int step) const {
  const double share = static_cast<double>(step) / kBudgetSteps;
  return floor + std::llround(static_cast<double>(keep_all - floor) * share);
}

int BudgetScale::step_of(std::int64_t bytes) const {
  if (keep_all <= floor || bytes >= keep_all) return kBudgetSteps;
  if (bytes <= floor) return 0;
  return static_cast<int>(
      std::lround(static_cast<double>(bytes - floor) * kBudgetSteps / static_cast<double>(keep_all - floor)));
}

double BudgetScale::percent_of(std::int64_t bytes) const {
  return keep_all > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(keep_all) : 100.0;
}

std::int64_t BudgetScale::bytes_of_percent(double percent) const {
  return std::llround(static_cast<double>(keep_all) * percent / 100.0);
}

}  // namespace tapedeck::viewer
