#include <tapedeck/viewer/planning/plan_archive.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kMostNodesHeld = 30'000;  // in the plans of all budgets that nobody asked for
constexpr std::size_t kMostFilled = 49;

// Of the plans that a person asked for. A plan of a million nodes takes a gigabyte with its tables.
constexpr std::size_t kMostNodesAsked = 1'000'000;
constexpr std::size_t kLeastAsked = 2, kMostAsked = 8;

std::size_t room_for(std::size_t nodes) {
  const std::size_t fits = kMostNodesHeld / std::max<std::size_t>(nodes, 1);
  return fits < 3 ? 0 : std::min(fits, kMostFilled);
}

}  // namespace

bool fits(const PlanModel& model, std::int64_t budget) {
  const Plan& plan = model.plan();
  return (budget < 0 || plan.peak_bytes <= budget) && (plan.feasible || plan.budget_bytes < 0);
}

PlanArchive::PlanArchive(std::size_t nodes)
    : room_(room_for(nodes)), asked_(std::clamp(kMostNodesAsked / std::max<std::size_t>(nodes, 1), kLeastAsked, kMostAsked)) {}

void PlanArchive::put(std::int64_t budget, std::shared_ptr<const PlanModel> model) {
  plans_[budget] = std::move(model);
  // The farthest of the others goes, and never the plan without a budget.
  while (plans_.size() > room_ + asked_) {
    auto farthest = plans_.end();
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if (it->first >= 0 && it->first != budget &&
          (farthest == plans_.end() || std::abs(it->first - budget) > std::abs(farthest->first - budget)))
        farthest = it;
    if (farthest == plans_.end()) return;
    plans_.erase(farthest);
  }
}

std::shared_ptr<const PlanModel> PlanArchive::find(std::int64_t budget) const {
  const auto it = plans_.find(budget);
  return it == plans_.end() ? nullptr : it->second;
}

std::shared_ptr<const PlanModel> PlanArchive::cheapest_within(std::int64_t budget) const {
  std::shared_ptr<const PlanModel> best;
  for (const auto& [asked, model] : plans_)
    if (fits(*model, budget) && (!best || model->plan().cost_us < best->plan().cost_us)) best = model;
  return best;
}

// The widest gap between known budgets is halved, until as many are known as there is room for.
std::optional<std::int64_t> PlanArchive::next_to_fill(std::int64_t floor, std::int64_t keep_all) const {
  if (filled_ || keep_all <= floor || plans_.size() >= room_) return std::nullopt;
  for (const std::int64_t end : {keep_all, floor})
    if (!plans_.count(end)) return end;
  std::int64_t before = floor, widest = 0, middle = 0;
  for (auto it = plans_.upper_bound(floor); it != plans_.end() && it->first <= keep_all; ++it) {
    if (it->first - before > widest) {
      widest = it->first - before;
      middle = before + widest / 2;
    }
    before = it->first;
  }
  if (widest < 2) return std::nullopt;
  return middle;
}

std::vector<KnownPlan> PlanArchive::points() const {
  std::vector<KnownPlan> points;
  for (const auto& [budget, model] : plans_) {
    const Plan& plan = model->plan();
    const double bound = plan.keep_all_cost_us > 0 ? plan.cost_lower_bound_us / plan.keep_all_cost_us : 0;
    if (budget >= 0) points.push_back({budget, plan.peak_bytes, plan.recompute_cost_ratio(), bound, plan.feasible});
  }
  return points;
}

}  // namespace tapedeck::viewer
