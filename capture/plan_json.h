// The reading half of a plan's JSON alone: kinds and ranges are checked, what the numbers mean is not. parse_plan() is for users.
#pragma once

#include <tapedeck/capture/plan.h>

#include <string>

namespace tapedeck {

// A plan without its graph. Throws InvalidGraphError.
Plan read_plan_json(const std::string& json);

}  // namespace tapedeck
