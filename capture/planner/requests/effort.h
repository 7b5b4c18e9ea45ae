// How much work a plan may take. Where a budget or the floor is asked for, it is as much as the planner can use. Where a step
// waits for its plan, it is a share of the time that the step itself takes.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck {

// The size of the graph that is planned.
struct StepSize {
  std::size_t nodes = 0, values = 0;
  double cost_us = 0;  // of running it once, with nothing recomputed
};

// Plans for budgets are wanted where a budget is given, or a strategy that is of use only under a budget.
LookFor what_to_look_for(const PlanOptions& options);

class PlanEffort {
 public:
  explicit PlanEffort(const PlanOptions& options) : options_(options) {}  // `options` outlive it

  // Whether strategies are asked that are of use only under a budget: because a budget is given, the floor is wanted, or the
  // options name such a strategy. Searches are then not limited to a share of the time of a step.
  bool looks_for_floor() const;

  OrderOptions order(const StepSize& step) const;
  int join_trials(const StepSize& step) const;                     // at least one
  bool orders_joins(const StepSize& step) const;                   // look for an order and parts together
  Placing greedy(const StepSize& step) const;                      // greedy placement alone
  Placing quick(const StepSize& step, const Layout& start) const;  // a short search, which the plans of a local search get
  Placing search(const StepSize& step, const Layout& start) const;

 private:
  std::int64_t slack() const;
  bool is_hurried(const StepSize& step) const;
  std::int64_t place_work(const StepSize& step) const;

  const PlanOptions& options_;
};

}  // namespace tapedeck
