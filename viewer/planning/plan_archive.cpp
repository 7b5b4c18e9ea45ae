#include <tapedeck/viewer/planning/plan_archive.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kMostNodesHeld = 30'000;  // in the plans of all budgets that nobody asked for
constexpr std::size_t kMostFilled = 49;

std::size_t budgets_to_fill(std::size_t nodes) {
  const std::size_t fits = kMostNodesHeld / std::max<std::size_t>(nodes, 1);
  return fits < 3 ? 0 : std::min(fits, kMostFilled);
}

bool fits(const PlanModel& model, std::int64_t budget) {
  const Plan& plan = model.plan();
  return plan.peak_bytes <= budget && (plan.feasible || plan.budget_bytes < 0);
}

}  // namespace

void PlanArchive::put(std::int64_t budget, std::shared_ptr<const PlanModel> model) {
  const std::size_t most = budgets_to_fill(model->graph().nodes.size()) + 8;
  plans_[budget] = std::move(model);
  // The farthest of the others goes, and never the plan without a budget.
  while (plans_.size() > most) {
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
std::optional<std::int64_t> PlanArchive::next_to_fill(std::int64_t floor, std::int64_t keep_all, std::size_t nodes) const {
  if (filled_ || keep_all <= floor || share_filled(nodes) >= 1) return std::nullopt;
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
    if (budget >= 0) points.push_back({budget, plan.peak_bytes, plan.recompute_cost_ratio(), plan.feasible});
  }
  return points;
}

double PlanArchive::share_filled(std::size_t nodes) const {
  const std::size_t most = budgets_to_fill(nodes);
  return most == 0 ? 1.0 : std::min(1.0, static_cast<double>(plans_.size()) / static_cast<double>(most));
}

}  // namespace tapedeck::viewer
