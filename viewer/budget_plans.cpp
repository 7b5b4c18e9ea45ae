#include <tapedeck/viewer/budget_plans.h>

#include <tapedeck/capture/planner/planner.h>

#include <utility>

namespace tapedeck::viewer {

Plan BudgetPlans::plan(const std::shared_ptr<const Graph>& graph, const PlanOptions& options) {
  if (options.budget < 0 && options.budget_percent < 0) return make_plan(*graph, options);
  if (!search_ || graph_ != graph || level_ != options.level) prepare(graph, options);
  return search_->plan(options.budget_percent < 0 ? options.budget : search_->bytes_of_percent(options.budget_percent));
}

void BudgetPlans::prepare(const std::shared_ptr<const Graph>& graph, PlanOptions options) {
  search_.reset();
  graph_ = graph;
  level_ = options.level;
  options.budget = -1;
  options.budget_percent = -1;
  preparing_ = graph.get();
  try {
    search_ = std::make_unique<PlanSearch>(*graph, options);
  } catch (...) {
    preparing_ = nullptr;
    throw;
  }
  preparing_ = nullptr;
}

}  // namespace tapedeck::viewer
