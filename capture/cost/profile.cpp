// A profile is built from the timelines of several steps and kept as JSON.
//     step 1: h 50 us, y 8 us     step 2: h 53 us, y 7 us     step 3: h 51 us, y 8 us      ->      h 51 us, y 8 us
// A node and its clones have one entry. The entry holds the median of all their runs.
#include <tapedeck/capture/cost/profile.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

constexpr const char* kProfileSchema = "tapedeck.profile/1";

}  // namespace

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  if (numbers.size() % 2) return *middle;
  return (*std::max_element(numbers.begin(), middle) + *middle) / 2;
}

std::string profile_name(const Graph& graph, const Node& node) {
  if (node.n_outputs == 0) return {};
  if (node.origin.clone && !node.origin.of.empty()) return node.origin.of.str();
  return graph.values[node.first_output].name.str();
}

// ---- measuring ----

ProfileBuilder::ProfileBuilder(const Graph& planned, std::int64_t clock_ns) : graph_(planned), clock_ns_(clock_ns) {
  std::map<std::string, std::int32_t> known;
  for (const Node& node : graph_.nodes) {
    const std::string name = profile_name(graph_, node);
    entry_of_.push_back(kNone);
    if (name.empty() || !valid_utf8(name)) continue;  // JSON could not hold such a name
    const auto [it, fresh] = known.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (fresh) names_.emplace_back(name, node.op->name);
    if (names_[it->second].second == node.op->name) entry_of_.back() = it->second;
  }
  us_.resize(names_.size());
}

void ProfileBuilder::add(const Timeline& step) {
  for (const Slice& slice : step.slices) {
    if (slice.node < 0 || slice.node >= graph_.node_count()) continue;
    const std::int32_t entry = entry_of_[slice.node];
    if (entry == kNone) continue;
    const std::int64_t ns = std::max<std::int64_t>(slice.end_ns - slice.start_ns - clock_ns_, 0);
    us_[entry].push_back(static_cast<double>(ns) / 1000);
  }
  run_us_.push_back(static_cast<double>(step.run_ns) / 1000);
}

Profile ProfileBuilder::finish() const {
  if (run_us_.empty()) throw UsageError("a profile needs at least one measured step");
  Profile profile;
  profile.machine = machine_name();
  profile.steps = static_cast<std::int32_t>(run_us_.size());
  profile.run_us = median(run_us_);
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!us_[i].empty()) profile.nodes.push_back({names_[i].first, names_[i].second, median(us_[i])});
  return profile;
}

// ---- as text ----

std::string profile_to_json(const Profile& profile) {
  JsonWriter json;
  json.open('{').key("schema").value(kProfileSchema);
  json.key("machine").value(std::string_view(profile.machine));
  json.key("threads").value(profile.threads);
  json.key("steps").value(profile.steps);
  json.key("run_us").value(profile.run_us);
  json.key("peak_bytes").value(profile.peak_bytes);
  json.key("nodes").open('[');
  for (const NodeTime& node : profile.nodes) {
    json.line().open('{').key("name").value(std::string_view(node.name)).key("op").value(std::string_view(node.op));
    json.key("us").value(node.us).close('}');
  }
  return json.close(']').close('}').take() + '\n';
}

namespace {

std::int64_t whole(JsonValue object, const char* key, std::int64_t least, std::int64_t most) {
  const std::int64_t number = object.member(key).as_integer();
  if (number < least || number > most) throw JsonError(fmt::format("{} is {}", key, number));
  return number;
}

double microseconds(JsonValue object, const char* key) {
  const double us = object.member(key).as_real();
  if (!plausible_us(us)) throw JsonError(fmt::format("{} is {}, which no time can be", key, us));
  return us;
}

Profile read_profile(JsonValue json) {
  const std::string_view schema = json.member("schema").as_string();
  if (schema != kProfileSchema) throw JsonError(fmt::format("the schema is {}, not {}", shown(schema), kProfileSchema));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Profile profile;
  profile.machine = json.member("machine").as_string();
  profile.threads = static_cast<std::int32_t>(whole(json, "threads", 1, kMost));
  profile.steps = static_cast<std::int32_t>(whole(json, "steps", 1, kMost));
  profile.run_us = microseconds(json, "run_us");
  profile.peak_bytes = whole(json, "peak_bytes", 0, std::numeric_limits<std::int64_t>::max());
  std::set<std::string_view> names;
  for (const JsonValue item : json.member("nodes").items()) {
    const std::string_view name = item.member("name").as_string();
    try {
      if (!names.insert(name).second) throw JsonError("stands there twice");
      profile.nodes.push_back({std::string(name), std::string(item.member("op").as_string()), microseconds(item, "us")});
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("node {}: {}", shown(name), e.what()));
    }
  }
  return profile;
}

}  // namespace

Profile parse_profile(std::string_view json) {
  try {
    const JsonDocument document(json);
    return read_profile(document.root());
  } catch (const JsonError& e) {
    throw FileError(fmt::format("not a readable profile: {}", e.what()));
  }
}

}  // namespace tapedeck
