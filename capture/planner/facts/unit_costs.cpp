#include <tapedeck/capture/planner/facts/unit_costs.h>

#include <algorithm>

namespace tapedeck {

Facts at_unit_costs(const Facts& facts) {
  Facts unit = facts;
  std::fill(unit.cost.begin(), unit.cost.end(), 1.0);
  unit.keep_all_cost = static_cast<double>(unit.cost.size());
  return unit;
}

}  // namespace tapedeck
