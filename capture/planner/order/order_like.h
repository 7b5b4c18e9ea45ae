// The order of another graph that was made from the same program, for a graph whose own nodes differ a little: what one set of
// sharing rules is planned in can be tried with another.
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <vector>

namespace tapedeck {

// The nodes of facts.graph by position, as those whose first results have the same names stand in `like`, each behind what it
// waits for. A node that `like` lacks runs just before the first that needs it; if nobody does, once all that it waits for has
// run. REQUIRES: facts without parts. O(nodes + operands + what nodes wait for).
std::vector<NodeId> order_like(const Facts& facts, const Graph& like, bool split_phases);

}  // namespace tapedeck
