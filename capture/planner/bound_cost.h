// How far the cost of a plan can be from the least cost of all plans that fit its budget.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace tapedeck {

struct Planning;
struct Order;

// The bounds of one planning, for many budgets. REQUIRES: the orders of the planning are all found, and it outlives this
// object.
class BoundedCosts {
 public:
  explicit BoundedCosts(const Planning& planning) : planning_(planning) {}

  // Fills in cost_lower_bound_us and bound_from for the plan's budget; without a budget it leaves them alone.
  void note(Plan* plan);

 private:
  struct Bound {
    const Order* order = nullptr;
    CostBound cost;
    double total_us = 0;
  };

  Bound bound_in(std::size_t order, std::int64_t budget);
  Bound least(std::int64_t budget);

  const Planning& planning_;
  std::map<std::size_t, std::unique_ptr<CostBounds>> bounds_;  // by number of the order, made when first asked
};

}  // namespace tapedeck
