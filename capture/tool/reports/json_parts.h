// What several *report.cpp share.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <nlohmann/json.hpp>

#include <string>

namespace tapedeck::tool {

using Json = nlohmann::ordered_json;

// An answer as it is printed. Text that is no UTF-8, as names in a file may be, is replaced and not thrown at.
inline std::string text_of(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json plan_json(const Plan& plan);  // plan_report.cpp: the plan's numbers, with the schema

}  // namespace tapedeck::tool
