// Plans for a device: a budget holds for all memory that an executor takes there, scratch and alignment included.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// As make_plan(), with the alignment of the device. With a budget, planned_device_bytes() of the result is not above it; a plan
// for which that cannot be reached is not feasible, and says why. Plan::budget_bytes is then the part of the budget that
// scratch and alignment leave. A budget in percent is one of the plan's own peak, as on the CPU: scratch comes on top of it,
// because for small graphs it is most of the memory.
Plan make_device_plan(const Graph& captured, PlanOptions options, const std::string& device = "cuda");

}  // namespace TAPEDECK_API
