// The plans of one problem that are known already, by budget. While a person drags the budget, the picture comes from here, and
// the curve of cost over peak grows with every plan.
#pragma once

#include <tapedeck/viewer/model/tradeoff_points.h>
#include <tapedeck/viewer/plan/plan_model.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tapedeck::viewer {

// Whether the plan holds a budget; -1: none.
bool fits(const PlanModel& model, std::int64_t budget);

// Not thread safe.
class PlanArchive {
 public:
  // For a captured graph of this many nodes. A large graph gets fewer plans, because every plan is as large as its graph.
  explicit PlanArchive(std::size_t nodes);

  // A plan that the full search gave for a budget; -1: without one.
  void put(std::int64_t budget, std::shared_ptr<const PlanModel> model);

  // The plan for exactly this budget; null if it is not known.
  std::shared_ptr<const PlanModel> find(std::int64_t budget) const;
  // The cheapest known plan whose peak is at most `budget`; null if there is none.
  std::shared_ptr<const PlanModel> cheapest_within(std::int64_t budget) const;

  // The next budget between `floor` and `keep_all` that is worth planning while nobody waits: first both ends, then the middle
  // of what is between. Nothing once as many budgets are known as there is room for.
  std::optional<std::int64_t> next_to_fill(std::int64_t floor, std::int64_t keep_all) const;

  void stop_filling() { filled_ = true; }  // from now on, nothing is next

  std::vector<KnownPlan> points() const;  // ascending by budget; the plan without a budget is left out

 private:
  std::size_t room_;   // for budgets that nobody asked for
  std::size_t asked_;  // further plans that a person asked for
  std::map<std::int64_t, std::shared_ptr<const PlanModel>> plans_;
  bool filled_ = false;
};

}  // namespace tapedeck::viewer
