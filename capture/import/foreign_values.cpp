#include <tapedeck/capture/import/foreign_values.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr double kMostWhole = 9007199254740992;  // 2^53: a larger real number may stand for several integers

std::optional<std::int64_t> digits(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

void refuse(const std::string& file, std::uint32_t line, const std::string& reason) {
  throw ParseError(fmt::format("{}:{}: error: {}", file, line, reason));
}

std::optional<std::int64_t> whole_number(JsonValue value) {
  if (value.kind() == JsonKind::integer) return value.as_integer();
  if (value.kind() == JsonKind::string) return digits(value.as_string());
  if (value.kind() != JsonKind::real) return std::nullopt;
  const double number = value.as_real();
  if (!(std::abs(number) <= kMostWhole) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<std::int64_t> bytes_in(JsonValue value) {
  const std::optional<std::int64_t> number = whole_number(value);
  return number && *number >= 0 && *number <= kMaxTypeBytes ? number : std::nullopt;
}

std::optional<double> microseconds_in(JsonValue value) {
  if (value.kind() != JsonKind::integer && value.kind() != JsonKind::real) return std::nullopt;
  const double number = value.as_real();
  return number >= 0 && number <= kMostMicroseconds ? std::optional(number) : std::nullopt;
}

std::string shown(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return value.as_bool() ? "true" : "false";
    case JsonKind::integer:
      return fmt::format("{}", value.as_integer());
    case JsonKind::real:
      return fmt::format("{}", value.as_real());
    case JsonKind::string:
      return shown(value.as_string());
    case JsonKind::array:
      return "an array";
    case JsonKind::object:
      return "an object";
  }
  return "";
}

std::string name_from_path(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  const std::string_view stem = path.substr(0, path.find('.'));
  return stem.empty() || stem.front() == '<' ? "main" : std::string(stem);
}

NodeId add_opaque(Graph* graph, std::span<const ValueId> operands, std::span<const std::int64_t> result_bytes,
                  double microseconds, const Origin& origin) {
  static const Op* const opaque = find_op("opaque");
  OpaqueAttrs attrs;
  attrs.us = microseconds;
  std::vector<Type> types;
  for (const std::int64_t bytes : result_bytes) types.push_back({DType::u8, {bytes}});
  return graph->add_node(*opaque, operands, &attrs, types, origin);
}

void set_results(Graph* graph, std::vector<ValueId> results, ImportedResults how, Name end_name) {
  if (how == ImportedResults::held && !results.empty()) {
    Origin origin;
    origin.phase = graph->nodes.empty() ? Phase::forward : graph->nodes.back().origin.phase;
    constexpr std::int64_t kNoBytes = 0;
    add_opaque(graph, results, {&kNoBytes, 1}, 0, origin);
    graph->values.back().name = end_name;
    results = {graph->value_count() - 1};
  }
  graph->outputs = std::move(results);
  graph->output_names.resize(graph->outputs.size());
}

}  // namespace tapedeck
