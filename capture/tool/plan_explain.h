// What `plan --explain` prints: choices (of recomputation), segments (how they were cut), peak (what lives there and what would lower it),
// memory (totals, and what sharing earns).
#pragma once

#include <tapedeck/capture/plan.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// Empty for an empty `what`. `node_us`: by node of the plan's graph.
std::string explained(const std::string& what, const Plan& plan, const std::vector<double>& node_us);

}  // namespace tapedeck::tool
