// Plans for a device: a budget holds for all memory that an executor takes there, scratch and alignment included.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// As make_plan(), with the alignment of the device. With a budget, planned_device_bytes() of the result is not above it; a plan
// for which that cannot be reached is not feasible, and says why. A budget in percent is one of the plan's own peak, as on the
// CPU: scratch and alignment come on top of it, because for small graphs they are most of the memory. Plan::budget_bytes is in
// both cases the budget for all memory on the device.
Plan make_device_plan(const Graph& captured, PlanOptions options, const std::string& device = "cuda");

// The bytes that scratch and alignment take on the device, beyond the peak of the plan.
std::int64_t device_overhead_bytes(const Plan& plan, const std::string& device = "cuda");

// Whether the plan, which may have been made for the CPU, keeps its own budget on the device. True for a plan without a budget.
bool keeps_budget_on(const Plan& plan, const std::string& device = "cuda");

}  // namespace TAPEDECK_API
