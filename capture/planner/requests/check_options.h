// The options that a planning accepts.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>

namespace tapedeck {

// Throws UsageError that names the first option that makes no sense.
void check_options(const PlanOptions& options);

}  // namespace tapedeck
