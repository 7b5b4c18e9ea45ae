// JSON that several reports share.
#pragma once

#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/tensor_difference.h>

#include <nlohmann/json.hpp>

#include <string>

namespace tapedeck::tool {

using Json = nlohmann::ordered_json;

// The printed form of an answer. Names in a file may hold bytes that are no UTF-8: they are replaced, and nothing is thrown.
inline std::string text_of(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// JSON has no infinities and no NaN: these are strings.
Json number_json(double value);                            // difference_report.cpp
Json difference_json(const TensorDifference& difference);  // difference_report.cpp

Json infeasible_json(const InfeasiblePlanError& error);  // report.cpp: budget, floor, and the node that sets the floor
Json plan_json(const Plan& plan);                        // plan_report.cpp: the plan's numbers, with the schema

}  // namespace tapedeck::tool
