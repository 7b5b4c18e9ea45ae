#include <tapedeck/capture/planner/rematerialize/plan_archive.h>

#include <iterator>
#include <utility>

namespace tapedeck {

const ArchivedPlan* PlanArchive::cheapest_within(std::int64_t live_bytes) const {
  const auto above = plans_.upper_bound(live_bytes);
  return above == plans_.begin() ? nullptr : &std::prev(above)->second;
}

std::int64_t PlanArchive::peak_of_cheapest_within(std::int64_t live_bytes) const {
  const auto above = plans_.upper_bound(live_bytes);
  return above == plans_.begin() ? -1 : std::prev(above)->first;
}

bool PlanArchive::is_beaten(std::int64_t live_peak, double cost) const {
  const auto above = plans_.upper_bound(live_peak);
  if (above == plans_.begin()) return false;
  const ArchivedPlan& known = std::prev(above)->second;
  return known.cost < cost + tolerance_;
}

bool PlanArchive::offer(std::int64_t live_peak, ArchivedPlan plan) {
  if (is_beaten(live_peak, plan.cost)) return false;
  auto first = plans_.lower_bound(live_peak), last = first;
  while (last != plans_.end() && last->second.cost >= plan.cost) ++last;
  plans_.erase(first, last);
  plans_.emplace(live_peak, std::move(plan));
  return true;
}

void PlanArchive::offer_all(const PlanArchive& other) {
  for (const auto& [peak, plan] : other.plans()) offer(peak, plan);
}

}  // namespace tapedeck
