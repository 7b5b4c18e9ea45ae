// Plans of one graph after another for the budgets that a slider asks for. The first budget of a graph prepares a search
// (capture/planner/plan_search.h), which takes as long as a plan; every further budget picks from it.
#pragma once

#include <tapedeck/capture/planner/plan_search.h>

#include <atomic>
#include <memory>

namespace tapedeck::viewer {

class BudgetPlans {
 public:
  // The plan that make_plan gives for these options. Without a budget nothing is prepared. Only one thread may call it.
  // options.cancel and options.progress must be the same in all calls for a graph. Throws as make_plan.
  Plan plan(const std::shared_ptr<const Graph>& graph, const PlanOptions& options);

  // Whether a search of this graph is being prepared. To cancel it would be a loss, because the next budget needs it too. Any
  // thread may call it.
  bool prepares(const Graph* graph) const { return preparing_.load() == graph; }

 private:
  void prepare(const std::shared_ptr<const Graph>& graph, PlanOptions options);

  std::shared_ptr<const Graph> graph_;  // of the search
  OptimizationLevel level_ = OptimizationLevel::all;
  std::unique_ptr<PlanSearch> search_;
  std::atomic<const Graph*> preparing_{nullptr};
};

}  // namespace tapedeck::viewer
