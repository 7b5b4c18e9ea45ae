#include <tapedeck/capture/tool/reports/explain_values.h>

#include <algorithm>

namespace tapedeck::tool {

namespace {

constexpr int kMostValues = 20;

}  // namespace

std::vector<std::string> explain_topics() { return {"choices", "segments", "peak", "memory", "wishes"}; }

bool is_explain_topic(const std::string& word) {
  const std::vector<std::string> topics = explain_topics();
  return std::find(topics.begin(), topics.end(), word) != topics.end();
}

std::string values_explained(const Plan& plan, const ValueBackground& values) {
  if (values.value) return value_text(plan, values.value->entry, &values.value->alone, &values.value->anew);
  return values.log.empty() ? "" : "values, those with the most bytes first:\n" + value_log_text(values.log, kMostValues);
}

}  // namespace tapedeck::tool
