// The text of `plan --explain`: choices (of recomputation), segments (how they are cut), peak (the values alive there, and the
// changes that would lower it), memory (totals, and the bytes that sharing saves), wishes (what each of them costs).
#pragma once

#include <tapedeck/capture/explain/sharing_bounds.h>
#include <tapedeck/capture/explain/wish_costs.h>
#include <tapedeck/capture/plan/plan.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// The facts that an explanation needs besides the plan; empty for topics that do not need them.
struct PlanBackground {
  std::vector<double> node_us;        // peak: by node of the plan's graph
  std::vector<SharingBound> sharing;  // memory: bounds with rules on and off
  std::vector<WishOutcome> wishes;    // for every topic; wishes: with costs
  std::string device = "cpu";         // segments: how this device runs them
};

// Empty for an empty `what`.
std::string explained(const std::string& what, const Plan& plan, const PlanBackground& background);

}  // namespace tapedeck::tool
