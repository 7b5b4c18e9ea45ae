#include <tapedeck/capture/tool/files/sizes.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace tapedeck::tool {

namespace {

struct Unit {
  const char* name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"KiB", 1024},
                           {"MiB", 1024.0 * 1024},
                           {"GiB", 1024.0 * 1024 * 1024},
                           {"TiB", 1024.0 * 1024 * 1024 * 1024}};

constexpr std::pair<const char*, double> kTimes[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};

bool same_ignoring_case(const std::string& a, const char* b) {
  std::size_t i = 0;
  for (; i < a.size() && b[i]; ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  return i == a.size() && !b[i];
}

double parse_percent(const std::string& text) {
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() - 1 || !(percent >= 0) || percent > 1e6)
    throw UsageError(fmt::format("'{}' is not a percentage; give a number such as 60%", text));
  return percent;
}

}  // namespace

std::int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const bool plain = !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.');
  if (plain && end != text.c_str() && std::isfinite(number))
    for (const Unit& unit : kUnits)
      if (same_ignoring_case(end, unit.name) && number * unit.bytes < 9e18)
        return static_cast<std::int64_t>(std::floor(number * unit.bytes));
  throw UsageError(fmt::format("'{}' is not a size; give a number of bytes such as 4096, 64MiB or 1.5GB", text));
}

std::int64_t parse_chunk(const std::string& text) {
  const std::int64_t bytes = text.empty() ? 0 : parse_size(text);
  if (!text.empty() && bytes == 0)
    throw UsageError(fmt::format("--chunk {}: a chunk needs at least one byte; give a size such as 64MiB", text));
  return bytes;
}

void read_budget(const std::string& text, PlanOptions* options) {
  if (text.empty()) return;
  if (text.back() == '%')
    options->budget_percent = parse_percent(text);
  else
    options->budget = parse_size(text);
}

double parse_seconds(const std::string& text) {
  constexpr double kLeast = 1e-3, kMost = 1e6;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const bool plain = !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.');
  if (plain && end != text.c_str() && std::isfinite(number))
    for (const auto& [unit, seconds] : kTimes)
      if (same_ignoring_case(end, unit) && number * seconds >= kLeast && number * seconds <= kMost) return number * seconds;
  throw UsageError(fmt::format("'{}' is not a time; give 0.001 to 1000000 seconds, such as 90, 500ms, 30s, 2min or 1h", text));
}

std::string human_size(std::int64_t bytes) {
  std::string digits = std::to_string(bytes);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(digits.begin() + at, ',');
  if (bytes < 1024) return digits + " bytes";
  const char* names[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int k = 0;
  for (; value >= 1024 && k < 3; ++k) value /= 1024;
  return fmt::format("{:.2f} {} ({} bytes)", value, names[k], digits);
}

std::string plural(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace tapedeck::tool
