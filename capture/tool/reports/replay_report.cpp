// The answer of `replay`, as JSON and as text.
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::tool {

namespace {

Json profile_json(const ProfileTable& t) {
  Json nodes = Json::array();
  for (const ProfileRow& r : t.rows)
    nodes.push_back({{"name", r.name},
                     {"op", r.op},
                     {"us", r.us},
                     {"runs", r.runs},
                     {"share", r.share},
                     {"estimate_us", r.estimate_us},
                     {"ratio", r.ratio > 0 ? Json(r.ratio) : Json(nullptr)}});
  return {{"machine", t.profile.machine},
          {"threads", t.profile.threads},
          {"steps", t.profile.steps},
          {"run_us", t.profile.run_us},
          {"kernels_us", t.kernels_us},
          {"estimate_us", t.estimate_us},
          {"estimates", t.estimates},
          {"saved", t.saved.empty() ? Json(nullptr) : Json(t.saved)},
          {"nodes", nodes}};
}

Json node_json(const NodeDifference& d) {
  Json j = {{"value", d.value}, {"op", d.op}, {"node", d.node}, {"site", d.site.empty() ? Json(nullptr) : Json(d.site)}};
  j.update(difference_json(d.difference));
  return j;
}

Json scalars_json(const std::vector<ScalarLog>& scalars) {
  Json list = Json::array();
  for (const ScalarLog& log : scalars) {
    Json values = Json::array();
    for (const double value : log.values) values.push_back(number_json(value));
    list.push_back({{"name", log.name}, {"steps", log.steps}, {"values", values}});
  }
  return list;
}

Json monitored_json(const std::vector<MonitoredValue>& monitored) {
  Json list = Json::array();
  for (const MonitoredValue& m : monitored)
    list.push_back({{"step", m.step},
                    {"name", m.name},
                    {"op", m.op},
                    {"type", to_string(m.type)},
                    {"min", m.statistics.min},
                    {"max", m.statistics.max},
                    {"mean", m.statistics.mean},
                    {"not_finite", m.statistics.not_finite()}});
  return list;
}

Json stop_json(const ShownStop& s) {
  Json j = {{"reason", stop_reason_name(s.reason)},
            {"node", s.node == kNone ? Json(nullptr) : Json(s.node)},
            {"nodes", s.nodes},
            {"nodes_left", s.nodes_left}};
  if (s.reason == StopReason::not_finite)
    j.update(
        {{"value", s.value}, {"element", s.element}, {"number", std::isnan(s.number) ? Json("nan") : number_json(s.number)}});
  return j;
}

Json histogram_json(const Histogram& h) {
  return {{"min", number_json(h.min)}, {"max", number_json(h.max)}, {"counts", h.counts}};
}

Json values_json(const std::vector<ShownValue>& values) {
  Json list = Json::array();
  for (const ShownValue& v : values)
    list.push_back({{"name", v.name},
                    {"op", v.op},
                    {"node", v.node == kNone ? Json(nullptr) : Json(v.node)},
                    {"type", to_string(v.type)},
                    {"elements", v.statistics.elements},
                    {"min", number_json(v.statistics.min)},
                    {"max", number_json(v.statistics.max)},
                    {"mean", number_json(v.statistics.mean)},
                    {"deviation", number_json(v.statistics.deviation)},
                    {"zeros", v.statistics.zeros},
                    {"nan", v.statistics.nan},
                    {"infinite", v.statistics.infinite},
                    {"histogram", histogram_json(v.histogram)},
                    {"nodes_again", v.nodes_again},
                    {"extra_bytes", v.extra_bytes}});
  return list;
}

Json expected_json(const std::vector<ExpectedCheck>& checks) {
  Json list = Json::array();
  bool equal = true;
  for (const ExpectedCheck& check : checks) {
    Json one = {{"name", check.name}, {"file", check.file}};
    one.update(difference_json(check.difference));
    equal = equal && check.difference.equal();
    list.push_back(std::move(one));
  }
  return {{"equal", equal}, {"outputs", list}};
}

std::string expected_text(const std::vector<ExpectedCheck>& checks) {
  std::string text;
  for (const ExpectedCheck& check : checks)
    if (!check.difference.equal())
      text += fmt::format("  DIFFERS        '{}' from {}: {}\n", check.name, check.file, to_text(check.difference));
  if (text.empty()) text = fmt::format("  as expected    {} output{}\n", checks.size(), checks.size() == 1 ? "" : "s");
  return text;
}

std::string eager_text(const ReplaySummary& s) {
  if (*s.equal_to_eager)
    return fmt::format("  equal to eager yes{}\n", s.on_device ? ", within the tolerance, on the CPU" : "");
  std::string text = fmt::format("  equal to eager NO, first at '{}' in step {}\n", s.first_difference, s.differing_step);
  if (s.differing_node) {
    const NodeDifference& d = *s.differing_node;
    text += fmt::format("  first node     {}{}\n                 {}\n", d.node, d.site.empty() ? "" : " (" + d.site + ")",
                        to_text(d.difference));
  }
  return text;
}

// A value is named as it was given; of a node, and of a stop that comes before it, the node is told.
std::string stop_text(const ReplaySummary& s) {
  const bool is_number = s.until.find_first_not_of("0123456789") == s.until.npos;
  const bool stopped_there = !s.stop || s.stop->reason == StopReason::node;
  if (!s.until.empty() && !is_number && stopped_there)
    return fmt::format("  until          the last step stopped behind '{}'\n", s.until);
  return s.stop ? fmt::format("  stopped        {}\n", text_of_stop(*s.stop)) : "";
}

}  // namespace

bool ReplaySummary::as_expected() const {
  const bool has_values = !expected || std::all_of(expected->begin(), expected->end(),
                                                   [](const ExpectedCheck& check) { return check.difference.equal(); });
  return equal_to_eager.value_or(true) && has_values;
}

std::string replay_report(const ReplaySummary& s) {
  Json j;
  j["schema"] = "tapedeck.replay/1";
  j["device"] = s.device;
  j["threads"] = s.threads;
  j["steps"] = s.steps;
  if (s.interrupted) j["interrupted"] = true;
  j["planned_peak_bytes"] = s.planned_peak_bytes;
  j["observed_peak_bytes"] = s.observed_peak_bytes;
  j["resident_peak_bytes"] = s.resident_peak_bytes >= 0 ? Json(s.resident_peak_bytes) : Json(nullptr);
  j["step_ms"] = {{"median", s.median_ms}, {"min", s.min_ms}, {"max", s.max_ms}};
  j["step_times_ms"] = s.step_ms;
  if (!s.phase_ms.empty()) {
    j["phase_ms"] = Json::object();
    for (const auto& [phase, ms] : s.phase_ms) j["phase_ms"][phase_name(phase)] = ms;
  }
  if (!s.until.empty()) j["until"] = s.until;
  if (s.stop) j["stopped"] = stop_json(*s.stop);
  if (!s.values.empty()) {
    j["values"] = values_json(s.values);
    j["kept_bytes"] = s.kept_bytes;
  }
  j["scalars"] = scalars_json(s.scalars);
  if (!s.monitored.empty()) j["monitored"] = monitored_json(s.monitored);
  j["equal_to_eager"] = s.equal_to_eager ? Json(*s.equal_to_eager) : Json(nullptr);
  if (!s.first_difference.empty()) j["first_difference"] = s.first_difference;
  if (s.differing_step > 0) j["first_differing_step"] = s.differing_step;
  if (s.differing_node) j["first_differing_node"] = node_json(*s.differing_node);
  if (s.expected) j["expected"] = expected_json(*s.expected);
  if (!s.written.empty()) j["written"] = s.written;
  if (s.profile) j["profile"] = profile_json(*s.profile);
  if (s.on_device) j["on_device"] = device_json(*s.on_device);
  return text_of(j);
}

std::string replay_text(const std::string& path, const ReplaySummary& s) {
  std::string text = fmt::format("{}: {} step{} on {} with {} thread{}\n", path, s.steps, s.steps == 1 ? "" : "s", s.device,
                                 s.threads, s.threads == 1 ? "" : "s");
  text += fmt::format("  planned peak   {}\n  observed peak  {}\n", human_size(s.planned_peak_bytes),
                      human_size(s.observed_peak_bytes));
  if (s.resident_peak_bytes >= 0)
    text += fmt::format("  resident peak  {}, all of this process\n", human_size(s.resident_peak_bytes));
  text += fmt::format("  step           median {:.3f} ms, min {:.3f}, max {:.3f}{}\n", s.median_ms, s.min_ms, s.max_ms,
                      s.steps == 1 ? "; a first step also sets up kernel libraries" : "");
  for (const auto& [phase, ms] : s.phase_ms)
    text += fmt::format("  {:<14} {:.3f} ms in the last step\n", phase_name(phase), ms);
  text += stop_text(s);
  if (s.on_device) text += device_text(*s.on_device);
  if (s.equal_to_eager) text += eager_text(s);
  if (s.expected) text += expected_text(*s.expected);
  if (s.kept_bytes > 0)
    text += fmt::format("  kept           {} of state and results, beside the peak\n", human_size(s.kept_bytes));
  for (const std::string& file : s.written) text += fmt::format("  wrote          {}\n", file);
  if (s.profile) text += profile_text(*s.profile);
  return text + text_of_values(s.values);
}

}  // namespace tapedeck::tool
