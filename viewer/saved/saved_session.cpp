// Writes and reads sessions as JSON. A reader of a member checks kinds, counts, lengths and ranges.
#include <tapedeck/viewer/saved/saved_session.h>

#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr const char* kVersionKey = "tapedeck_session";
constexpr std::uint32_t kMostItems = 4096;
constexpr std::size_t kMostName = 128 * 1024;   // the bytes of a name, a pattern or a filter; a field takes fewer
constexpr std::size_t kMostLayout = 64 * 1024;  // the bytes of the layout; Qt writes about two thousand
constexpr double kMostPlace = 1e15;             // of a time or an address: doubles count bytes exactly up to there
constexpr std::int64_t kMostBytes = 9'000'000'000'000'000'000;  // of a budget, as parse_bytes() takes it
constexpr double kMostWidth = 10000;                            // of a column, in units

// ---- writing ----

void write(JsonWriter& json, const Range& range) { json.open('[').value(range.low).value(range.high).close(']'); }

void write_members(JsonWriter& json, const SavedPlace& place) {
  if (place.view) {
    json.key("view").open('{').key("time");
    write(json, place.view->time);
    json.key("address");
    write(json, place.view->address);
    json.close('}');
  }
  if (!place.value.empty()) json.key("value").value(place.value).key("run").value(place.run);
  if (place.node != kNone) json.key("node").value(place.node);
}

void write(JsonWriter& json, const SavedRegion& region) {
  json.open('{').key("path").open('[');
  for (const RegionStep& step : region.path)
    json.open('{').key("value").value(step.value).key("region").value(std::int64_t{step.region}).close('}');
  json.close(']');
  write_members(json, region.place);
  json.close('}');
}

void write(JsonWriter& json, const Budget& budget) {
  json.open('{');
  if (budget.bytes >= 0) json.key("bytes").value(budget.bytes);
  if (budget.percent >= 0) json.key("percent").value(budget.percent);
  json.close('}');
}

void write(JsonWriter& json, const std::vector<Wish>& wishes) {
  json.open('[');
  for (const Wish& wish : wishes)
    json.open('{').key(wish.kind == WishKind::keep ? "keep" : "recompute").value(wish.pattern).close('}');
  json.close(']');
}

void write(JsonWriter& json, const std::vector<Bookmark>& bookmarks) {
  json.open('[');
  for (const Bookmark& bookmark : bookmarks) {
    json.line().open('{').key("name").value(bookmark.name);
    write_members(json, bookmark.place);
    json.close('}');
  }
  json.close(']');
}

void write(JsonWriter& json, const SavedTable& table) {
  json.open('{').key("name").value(table.name).key("filter").value(table.filter);
  json.key("sort").value(table.sort).key("descending").value(table.descending).key("columns").open('[');
  for (const SavedColumn& column : table.columns)
    json.open('{').key("key").value(column.key).key("width").value(column.width).key("hidden").value(column.hidden).close('}');
  json.close(']').close('}');
}

void write(JsonWriter& json, const std::vector<SavedTable>& tables) {
  json.open('[');
  for (const SavedTable& table : tables) write(json.line(), table);
  json.close(']');
}

// ---- reading ----

std::string text_of(const JsonValue& value, std::size_t most = kMostName) {
  const std::string_view text = value.as_string();
  if (text.size() > most) throw JsonError(fmt::format("a text of {} bytes, where {} are allowed", text.size(), most));
  return std::string(text);
}

double number_of(const JsonValue& value, double least, double most) {
  const double number = value.as_real();
  if (!(number >= least && number <= most))  // NaN, too
    throw JsonError(fmt::format("{} where a number from {} to {} should be", number, least, most));
  return number;
}

std::int64_t whole_of(const JsonValue& value, std::int64_t most) {
  const std::int64_t number = value.as_integer();
  if (number < 0 || number > most) throw JsonError(fmt::format("{} where a number from 0 to {} should be", number, most));
  return number;
}

NodeId node_of(const JsonValue& value) { return static_cast<NodeId>(whole_of(value, std::numeric_limits<NodeId>::max())); }

// Reads the items of an array by `read_one`.
template <class Item>
std::vector<Item> list_of(const JsonValue& array, Item (*read_one)(const JsonValue&)) {
  std::vector<Item> list;
  for (const JsonValue& item : array.items()) {
    if (list.size() == kMostItems) throw JsonError(fmt::format("more than {} items", kMostItems));
    list.push_back(read_one(item));
  }
  return list;
}

Range read_range(const JsonValue& array) {
  const std::vector<double> ends =
      list_of<double>(array, [](const JsonValue& end) { return number_of(end, -kMostPlace, kMostPlace); });
  if (ends.size() != 2 || !(ends[0] < ends[1])) throw JsonError("a range has two ends, the lower one first");
  return {ends[0], ends[1]};
}

PlanView read_view(const JsonValue& object) {
  const std::optional<JsonValue> time = object.find("time"), address = object.find("address");
  if (!time || !address) throw JsonError("a view has \"time\" and \"address\"");
  return {read_range(*time), read_range(*address)};
}

SavedPlace read_place(const JsonValue& object) {
  SavedPlace place;
  if (const auto view = object.find("view")) place.view = read_view(*view);
  if (const auto value = object.find("value")) place.value = text_of(*value);
  if (const auto run = object.find("run"))
    place.run = static_cast<std::int32_t>(whole_of(*run, std::numeric_limits<std::int32_t>::max()));
  if (place.value.empty()) place.run = 0;
  if (const auto node = object.find("node")) place.node = node_of(*node);
  return place;
}

RegionStep read_step(const JsonValue& object) {
  const std::optional<JsonValue> value = object.find("value"), region = object.find("region");
  if (!value || value->as_string().empty() || !region) throw JsonError("a step into a region has \"value\" and \"region\"");
  return {text_of(*value), static_cast<int>(whole_of(*region, std::numeric_limits<std::int32_t>::max()))};
}

SavedRegion read_region(const JsonValue& object) {
  SavedRegion region;
  if (const auto path = object.find("path")) region.path = list_of(*path, read_step);
  region.place = read_place(object);
  if (region.path.empty()) region.place = {region.place.view, "", 0, kNone};  // the selection in the step is that of all panels
  return region;
}

// The view of the memory plan in the step is that of the session.
SavedRegion read_memory_region(const JsonValue& object) {
  SavedRegion region = read_region(object);
  if (region.path.empty()) region.place = {};
  return region;
}

Bookmark read_bookmark(const JsonValue& object) {
  const std::optional<JsonValue> name = object.find("name");
  if (!name || name->as_string().empty()) throw JsonError("a bookmark has a \"name\"");
  return {text_of(*name), read_place(object)};
}

Budget read_budget(const JsonValue& object) {
  Budget budget;
  if (const auto bytes = object.find("bytes")) budget.bytes = whole_of(*bytes, kMostBytes);
  if (const auto percent = object.find("percent")) budget.percent = number_of(*percent, 0, 1e6);
  if (budget.bytes >= 0 && budget.percent >= 0) throw JsonError("a budget is bytes or percent, not both");
  return budget;
}

Wish read_wish(const JsonValue& object) {
  const std::optional<JsonValue> keep = object.find("keep"), recompute = object.find("recompute");
  if (keep.has_value() == recompute.has_value()) throw JsonError("a wish has either \"keep\" or \"recompute\"");
  return keep ? Wish{WishKind::keep, text_of(*keep)} : Wish{WishKind::recompute, text_of(*recompute)};
}

SavedColumn read_column(const JsonValue& object) {
  SavedColumn column;
  if (const auto key = object.find("key")) column.key = text_of(*key);
  if (const auto width = object.find("width")) column.width = number_of(*width, 0, kMostWidth);
  if (const auto hidden = object.find("hidden")) column.hidden = hidden->as_bool();
  return column;
}

SavedTable read_table(const JsonValue& object) {
  SavedTable table;
  if (const auto name = object.find("name")) table.name = text_of(*name);
  if (const auto filter = object.find("filter")) table.filter = text_of(*filter);
  if (const auto sort = object.find("sort")) table.sort = text_of(*sort);
  if (const auto descending = object.find("descending")) table.descending = descending->as_bool();
  if (const auto columns = object.find("columns")) table.columns = list_of(*columns, read_column);
  return table;
}

NodeRange read_nodes(const JsonValue& array) {
  const std::vector<NodeId> ends = list_of<NodeId>(array, node_of);
  if (ends.size() != 2 || ends[0] > ends[1]) throw JsonError("a range has two ends, the lower one first");
  return {ends[0], ends[1]};
}

CostSource read_costs(const JsonValue& value) {
  CostSource source = CostSource::best;
  if (!parse_cost_source(value.as_string(), &source)) throw JsonError("no source of costs: " + shown(value.as_string()));
  return source;
}

std::string read_layout(const JsonValue& value) {
  std::string text = text_of(value, kMostLayout);
  const auto is_base64 = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=';
  };
  if (!std::all_of(text.begin(), text.end(), is_base64)) throw JsonError("no base64");
  return text;
}

struct MemberReader {
  std::string_view key;
  void (*read)(const JsonValue& value, SavedSession* session);
};

constexpr MemberReader kMembers[] = {
    {"graph", [](const JsonValue& v, SavedSession* s) { s->graph = text_of(v); }},
    {"plan", [](const JsonValue& v, SavedSession* s) { s->plan = text_of(v); }},
    {"budget", [](const JsonValue& v, SavedSession* s) { s->budget = read_budget(v); }},
    {"costs", [](const JsonValue& v, SavedSession* s) { s->costs = read_costs(v); }},
    {"strategy", [](const JsonValue& v, SavedSession* s) { s->strategy = text_of(v); }},
    {"recorded_order", [](const JsonValue& v, SavedSession* s) { s->recorded_order = v.as_bool(); }},
    {"wishes", [](const JsonValue& v, SavedSession* s) { s->wishes = list_of(v, read_wish); }},
    {"place", [](const JsonValue& v, SavedSession* s) { s->place = read_place(v); }},
    {"memory_region", [](const JsonValue& v, SavedSession* s) { s->memory_region = read_memory_region(v); }},
    {"graph_region", [](const JsonValue& v, SavedSession* s) { s->graph_region = read_region(v); }},
    {"range", [](const JsonValue& v, SavedSession* s) { s->range = read_nodes(v); }},
    {"bookmarks", [](const JsonValue& v, SavedSession* s) { s->bookmarks = list_of(v, read_bookmark); }},
    {"tables", [](const JsonValue& v, SavedSession* s) { s->tables = list_of(v, read_table); }},
    {"open_modules",
     [](const JsonValue& v, SavedSession* s) {
       s->open_modules = list_of<std::string>(v, [](const JsonValue& path) { return text_of(path); });
     }},
    {"layout", [](const JsonValue& v, SavedSession* s) { s->layout = read_layout(v); }},
};

void check_version(const JsonValue& root) {
  if (root.kind() != JsonKind::object) throw JsonError("it is no session of the viewer");
  const std::optional<JsonValue> version = root.find(kVersionKey);
  if (!version || version->kind() != JsonKind::integer) throw JsonError("it is no session of the viewer");
  if (version->as_integer() != kVersion)
    throw JsonError(fmt::format("its version is {}, and this viewer reads version {}", version->as_integer(), kVersion));
}

}  // namespace

std::string session_text(const SavedSession& session) {
  JsonWriter json;
  json.open('{').key(kVersionKey).value(kVersion);
  json.line().key("graph").value(session.graph).key("plan").value(session.plan);
  write(json.line().key("budget"), session.budget);
  json.line().key("costs").value(cost_source_name(session.costs));
  json.line().key("strategy").value(session.strategy).key("recorded_order").value(session.recorded_order);
  write(json.line().key("wishes"), session.wishes);
  json.line().key("place").open('{');
  write_members(json, session.place);
  json.close('}');
  if (!session.memory_region.path.empty()) write(json.line().key("memory_region"), session.memory_region);
  if (!session.graph_region.path.empty() || session.graph_region.place.view)
    write(json.line().key("graph_region"), session.graph_region);
  if (!session.range.empty())
    json.line().key("range").open('[').value(session.range.first).value(session.range.last).close(']');
  write(json.line().key("bookmarks"), session.bookmarks);
  write(json.line().key("tables"), session.tables);
  if (session.open_modules && session.open_modules->size() <= kMostItems) {
    json.line().key("open_modules").open('[');
    for (const std::string& path : *session.open_modules) json.value(path);
    json.close(']');
  }
  json.line().key("layout").value(session.layout).close('}');
  return json.take() + "\n";
}

SavedSession read_session(std::string_view text) {
  if (text.size() > kMostSessionBytes) throw JsonError("it is too long");
  const JsonDocument document(text);
  check_version(document.root());
  SavedSession session;
  for (const JsonValue::Member& member : document.root().members()) {
    const auto reader = std::find_if(std::begin(kMembers), std::end(kMembers),
                                     [&](const MemberReader& known) { return known.key == member.key; });
    if (reader == std::end(kMembers)) continue;
    try {
      reader->read(member.value, &session);
    } catch (const JsonError& error) {
      throw JsonError(fmt::format("line {}, \"{}\": {}", member.value.line(), member.key, error.what()));
    }
  }
  return session;
}

std::string tables_text(const std::vector<SavedTable>& tables) {
  JsonWriter json;
  write(json, tables);
  return json.take();
}

std::vector<SavedTable> read_tables(std::string_view text) {
  if (text.size() > kMostSessionBytes) throw JsonError("it is too long");
  const JsonDocument document(text);
  return list_of(document.root(), read_table);
}

}  // namespace tapedeck::viewer
