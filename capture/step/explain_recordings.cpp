// explain() of a captured step. Text and JSON have the same sections, which stand in one table:
//
//     recorded 2 times, replayed 10 times
//     for (f32[32,784], i64[32]): first call
//     inputs:
//       in0: f32[32,784]
//     ...
#include <tapedeck/capture/step/explain_recordings.h>

#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tapedeck {

namespace {

using Items = std::vector<CaptureReport::Item>;

struct Section {
  const char* title;
  const char* key;
  Items CaptureReport::*items;
};
constexpr Section kSections[] = {{"inputs", "inputs", &CaptureReport::inputs},
                                 {"state", "state", &CaptureReport::state},
                                 {"random", "random", &CaptureReport::random},
                                 {"constants baked in", "constants", &CaptureReport::constants},
                                 {"host calls", "host_calls", &CaptureReport::host_calls},
                                 {"outputs", "outputs", &CaptureReport::outputs},
                                 {"gradients left", "gradients", &CaptureReport::gradients}};

std::string text_of(const char* title, const Items& items) {
  if (items.empty()) return "";
  std::string text = fmt::format("{}:\n", title);
  for (const auto& i : items)
    text += fmt::format("  {}: {}{}{}\n", i.name, to_string(i.type), i.detail.empty() ? "" : "  ", i.detail);
  return text;
}

std::string mutated_text(const CaptureReport& report) {
  if (report.mutated.empty()) return "";
  std::string text = fmt::format("updated: {}\n", fmt::join(report.mutated, ", "));
  for (std::size_t i = 0; i < report.mutated.size(); ++i)
    text += fmt::format("  {}: by {}\n", report.mutated[i], report.written_by[i]);
  return text;
}

void write_items(JsonWriter& json, const char* key, const Items& items) {
  json.key(key).open('[');
  for (const auto& i : items) {
    json.line().open('{');
    json.key("name")
        .value(i.name)
        .key("type")
        .value(to_string(i.type))
        .key("bytes")
        .value(i.type.bytes())
        .key("detail")
        .value(i.detail);
    json.close('}');
  }
  json.close(']');
}

void write_report(JsonWriter& json, const CaptureReport& report) {
  for (const Section& s : kSections) write_items(json.line(), s.key, report.*s.items);
  json.line().key("updated").open('[');
  for (std::size_t i = 0; i < report.mutated.size(); ++i) {
    json.line().open('{');
    json.key("name").value(report.mutated[i]).key("by").value(report.written_by[i]);
    json.close('}');
  }
  json.close(']');
}

void write_plan(JsonWriter& json, const Plan& plan) {
  json.line().key("plan").open('{');
  json.key("nodes").value(plan.nodes).key("segments").value(static_cast<std::int64_t>(plan.segments.size()));
  json.key("peak_bytes").value(plan.peak_bytes).key("arena_bytes").value(plan.arena_bytes);
  json.close('}');
}

}  // namespace

std::string CaptureReport::to_string() const {
  std::string text;
  for (const Section& s : kSections) {
    text += text_of(s.title, this->*s.items);
    if (s.items == &CaptureReport::state) text += mutated_text(*this);
  }
  return text;
}

std::string explain_text(const StepCounts& counts, const std::vector<Explanation>& recordings) {
  std::string text = fmt::format("recorded {} times, replayed {} times", counts.recordings, counts.replays);
  text += counts.checks ? fmt::format(", checked {} times\n", counts.checks) : "\n";
  for (const Explanation& e : recordings) {
    text += fmt::format("for ({}): {}\n", e.types, fmt::join(e.reasons, "; then "));
    if (e.report) text += e.report->to_string();
    if (e.plan) text += fmt::format("planned peak {} bytes in {} segments\n", e.plan->peak_bytes, e.plan->segments.size());
  }
  return text;
}

std::string explain_json(const StepCounts& counts, const std::vector<Explanation>& recordings) {
  JsonWriter json;
  json.open('{');
  json.key("schema").value("tapedeck.explain/1");
  json.key("recordings").value(counts.recordings).key("replays").value(counts.replays).key("checks").value(counts.checks);
  json.line().key("programs").open('[');
  for (const Explanation& e : recordings) {
    json.line().open('{');
    json.key("types").value(e.types).key("reasons").open('[');
    for (const std::string& reason : e.reasons) json.value(reason);
    json.close(']');
    if (e.report) write_report(json, *e.report);
    if (e.plan) write_plan(json, *e.plan);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.take() + "\n";
}

}  // namespace tapedeck
