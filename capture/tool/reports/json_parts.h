// JSON that several reports share.
#pragma once

#include <tapedeck/capture/cost/machine_peaks.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/tensor_difference.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tapedeck::tool {

using Json = nlohmann::ordered_json;

struct DeviceUse;
struct RooflineAnswer;

// The printed form of an answer. Names in a file may hold bytes that are no UTF-8: they are replaced, and nothing is thrown.
inline std::string text_of(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// JSON has no infinities and no NaN: these are strings.
Json number_json(double value);                            // difference_report.cpp
Json difference_json(const TensorDifference& difference);  // difference_report.cpp

Json infeasible_json(const InfeasiblePlanError& error);  // report.cpp: budget, floor, and the node that sets the floor
Json plan_json(const Plan& plan);                        // plan_report.cpp: the plan's numbers, with the schema

Json peaks_json(const std::vector<ThreadPeaks>& peaks);  // roofline_report.cpp
Json roofline_json(const RooflineAnswer& answer);        // roofline_report.cpp
Json device_json(const DeviceUse& use);                  // device_report.cpp

}  // namespace tapedeck::tool
