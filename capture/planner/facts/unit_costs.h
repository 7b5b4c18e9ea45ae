// The same facts with cost 1 for every node. Choices by these facts do not depend on the source of the microseconds.
//
//     cost            %h: 3.5 us   %t: 0.2 us   %m: 12 us          keep_all_cost 15.7 us
//     at unit costs   %h: 1        %t: 1        %m: 1              keep_all_cost 3
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

namespace tapedeck TAPEDECK_API {

Facts at_unit_costs(const Facts& facts);

}  // namespace TAPEDECK_API
