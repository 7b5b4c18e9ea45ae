// What `plan --explain choices` and `plan --explain VALUE` say of single values.
#pragma once

#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/explain/value_prices.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/tool/reports/plan_explain.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct ExplainedValue {
  ValueEntry entry;
  ValuePrice alone, anew;  // of the other choice
};

struct ValueBackground {
  std::vector<ValueEntry> log;          // choices: the decision log
  std::optional<ExplainedValue> value;  // of the word that names it
};

std::vector<std::string> explain_topics();  // the words that --explain takes beside names of values
bool is_explain_topic(const std::string& word);

// Text behind explained() and objects of JSON beside those of plan_report(). Nothing, where the background is empty.
std::string values_explained(const Plan& plan, const ValueBackground& values);
std::string plan_report(const Plan& plan, const std::string& explain, const PlanBackground& background,
                        const ValueBackground& values);  // plan_report.cpp

}  // namespace tapedeck::tool
