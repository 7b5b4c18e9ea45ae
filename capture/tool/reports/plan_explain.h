// What `plan --explain` prints: choices (of recomputation), segments (how they were cut), peak (what lives there and what would
// lower it), memory (totals, and what sharing earns).
#pragma once

#include <tapedeck/capture/explain/sharing_bounds.h>
#include <tapedeck/capture/plan/plan.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// What an explanation needs besides the plan; empty where `what` does not ask for it.
struct PlanBackground {
  std::vector<double> node_us;        // peak: by node of the plan's graph
  std::vector<SharingBound> sharing;  // memory: bounds with rules on and off
};

// Empty for an empty `what`.
std::string explained(const std::string& what, const Plan& plan, const PlanBackground& background);

}  // namespace tapedeck::tool
