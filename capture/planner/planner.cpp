#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/capture/planner/plan_stages.h>
#include <tapedeck/capture/planner/requests/check_options.h>

#include <chrono>

namespace tapedeck {

Plan make_plan(const Graph& graph, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  PlanStages stages(graph, options, what_to_look_for(options));
  Plan plan = stages.plan(budget_in_bytes(options, stages.limits()), options.strategy);
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace tapedeck
