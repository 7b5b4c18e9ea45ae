// The first step of reading a plan's JSON: it checks kinds and ranges, and not the meaning of the numbers. Users call
// parse_plan().
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <string>

namespace tapedeck {

// A plan without its graph; the plans of its regions have no graphs either. Throws InvalidGraphError.
Plan read_plan_json(const std::string& json);

}  // namespace tapedeck
