// What a plan was asked for, written into the plan, and read from it to ask for the same with another budget.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

PlanRequest request_of(const PlanOptions& options);

// The options that the plan was made with, but for its budget, the source of its microseconds and its device, which a plan does
// not name. Throws UsageError if its strategy is not registered in this program.
PlanOptions options_asked(const Plan& plan);

}  // namespace TAPEDECK_API
