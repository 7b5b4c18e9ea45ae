// Parts that several *report.cpp share.
#pragma once

#include <tapedeck/capture/plan.h>

#include <nlohmann/json.hpp>

namespace tapedeck::tool {

nlohmann::ordered_json plan_json(const Plan& plan);   // plan_report.cpp: the plan's numbers, with the schema

}  // namespace tapedeck::tool
