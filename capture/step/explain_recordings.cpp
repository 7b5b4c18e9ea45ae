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

#include <algorithm>
#include <utility>

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

// "42.7 MB": a size for a glance.
std::string short_size(std::int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (b < 999.95e3) return fmt::format("{:.1f} KB", b / 1e3);
  return b < 999.95e6 ? fmt::format("{:.1f} MB", b / 1e6) : fmt::format("{:.2f} GB", b / 1e9);
}

std::int64_t bytes_of(const Items& items) {
  std::int64_t bytes = 0;
  for (const auto& i : items) bytes += i.type.bytes();
  return bytes;
}

// "x f32[64,784], y i32[64], and 3 more: 201.0 KB"
std::string items_summary(const Items& items) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kMost); ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", items[i].name, to_string(items[i].type));
  if (items.size() > kMost) text += fmt::format(", and {} more", items.size() - kMost);
  return fmt::format("{}: {}", text, short_size(bytes_of(items)));
}

// "62 parameters, 20 statistics, 1 random state: 42.7 MB"
std::string state_summary(const Items& state, std::size_t updated) {
  constexpr std::pair<Role, const char*> kNames[] = {{Role::parameter, "parameter"}, {Role::moment, "moment"},
                                                     {Role::statistic, "statistic"}, {Role::counter, "counter"},
                                                     {Role::rng, "random state"},    {Role::none, "other value"}};
  std::size_t rest = state.size();
  std::string text;
  for (const auto& [role, name] : kNames) {
    const auto has_role = [role = role](const CaptureReport::Item& i) { return i.detail == role_name(role); };
    const auto counted = static_cast<std::size_t>(std::count_if(state.begin(), state.end(), has_role));
    const std::size_t count = role == Role::none ? rest : counted;
    rest -= count;
    if (count > 0) text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, name, count == 1 ? "" : "s");
  }
  const std::string which = updated == state.size() ? "all" : fmt::format("{}", updated);
  return fmt::format("{}: {}, {} updated by the step", text, short_size(bytes_of(state)), which);
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

std::string CaptureReport::summary() const {
  std::string text;
  for (const Section& s : kSections) {
    const Items& items = this->*s.items;
    if (items.empty() || s.items == &CaptureReport::random) continue;  // the random state is part of the state
    const bool is_state = s.items == &CaptureReport::state;
    text += fmt::format("{}: {}\n", s.title, is_state ? state_summary(items, mutated.size()) : items_summary(items));
  }
  return text;
}

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
  if (counts.eager)
    text += fmt::format(
        "ran {} times eagerly: it draws other numbers in every call, because it begins no random step (next_step())\n",
        counts.eager);
  if (counts.fallbacks)
    text += fmt::format("ran {} times eagerly by eager_fallback; the reason of the last eager call: {}\n", counts.fallbacks,
                        counts.last_eager_reason);
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
  json.key("eager").value(counts.eager);
  if (counts.fallbacks) json.key("fallbacks").value(counts.fallbacks).key("last_eager_reason").value(counts.last_eager_reason);
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
