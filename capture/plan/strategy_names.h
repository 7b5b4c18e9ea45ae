// The names of strategies. `Strategy` has values for the strategies that come with the library; a strategy that is registered
// beside them gets the next free value here. The registry is planner/rematerialize/strategy.h.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <string_view>

namespace tapedeck TAPEDECK_API {

// The value of this name, for strategy_name() and parse_strategy() too; a new value if the name is new. Names live for the
// whole process. REQUIRES: happens at start-up. Throws UsageError if there are too many names.
Strategy add_strategy_name(std::string_view name);

}  // namespace TAPEDECK_API
