// The names of the levels of optimization, as plans in files and reports spell them.
#pragma once

#include <tapedeck/capture/plan/optimization_level.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

// "none" "cleanups" "all"; "unknown" for any other value.
const char* level_name(OptimizationLevel level);

}  // namespace TAPEDECK_API
