// The scratch of a plan is known once the plan is there, so the planner is asked again with what scratch leaves of the budget.
#include <tapedeck/capture/replay/device/device_plan.h>

#include <tapedeck/capture/replay/device/device_schedule.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck {

Plan make_device_plan(const Graph& captured, PlanOptions options, const std::string& device) {
  constexpr int kMostPlans = 4;  // scratch hardly depends on the budget, so the second plan nearly always fits
  options.device = DeviceType::cuda;
  Plan plan = make_plan(captured, options);
  if (options.budget < 0) return plan;
  const std::int64_t budget = options.budget;
  for (int made = 1; plan.feasible; ++made) {
    const std::int64_t over = planned_device_bytes(plan, device) - budget;
    if (over <= 0) return plan;
    options.budget = plan.peak_bytes - over;  // the planner may have stayed below its budget
    if (options.budget < 0 || made == kMostPlans) {
      plan.feasible = false;
      plan.infeasible_reason =
          fmt::format("on the device this plan takes {} bytes more than its budget of {}, scratch included", over, budget);
      break;
    }
    plan = make_plan(captured, options);
  }
  return plan;
}

}  // namespace tapedeck
