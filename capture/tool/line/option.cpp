// What the help and the parser ask of an option: its kind, its default as text, and whether a typed value is one that it takes.
#include <tapedeck/capture/tool/line/option.h>

#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace tapedeck::tool {

namespace {

template <class... T>
bool holds(const Option& option) {
  return (std::holds_alternative<T*>(option.to) || ...);
}

bool is_whole_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  std::strtoll(text.c_str(), &end, 0);
  return !text.empty() && *end == 0 && errno == 0;
}

std::string number_text(double value) { return fmt::format("{}", static_cast<std::int64_t>(value)); }

// "1 to 4096"; limits that are no whole numbers, or are larger than an i64, print as they are.
std::string limits_text(const Option& o) {
  const auto text = [](double v) { return v == std::floor(v) && std::fabs(v) < 9e18 ? number_text(v) : fmt::format("{}", v); };
  return fmt::format("{} to {}", text(o.least), text(o.most));
}

std::string number_fault(const Option& o, const std::string& text) {
  if (holds<int, std::int64_t, std::uint64_t, std::vector<int>>(o) && !is_whole_number(text))
    return fmt::format("'{}' is not a whole number", text);
  char* end = nullptr;
  const double value =
      is_whole_number(text) ? static_cast<double>(std::strtoll(text.c_str(), nullptr, 0)) : std::strtod(text.c_str(), &end);
  if (end && (text.empty() || *end != 0)) return fmt::format("'{}' is not a number", text);
  const bool is_within = value >= o.least && value <= o.most;  // false for NaN
  if ((o.least != 0 || o.most != 0) && !is_within) return fmt::format("{} is not in the range {}", text, limits_text(o));
  return "";
}

}  // namespace

bool is_argument(const Option& option) { return option.name[0] != '-'; }
bool is_flag(const Option& option) { return holds<bool>(option); }
bool is_list(const Option& option) { return holds<std::vector<int>, std::vector<std::string>>(option); }
bool takes_rest(const Option& option) { return is_list(option) && option.several == Several::rest; }
bool takes_files(const Option& option) {
  return (is_argument(option) ? option.name : option.metavar).find("FILE") != std::string::npos;
}

std::string default_text(const Option& o) {
  if (!o.fallback.empty()) return o.fallback;
  if (const auto* to = std::get_if<int*>(&o.to)) return std::to_string(**to);
  if (const auto* to = std::get_if<std::int64_t*>(&o.to)) return std::to_string(**to);
  if (const auto* to = std::get_if<std::uint64_t*>(&o.to)) return std::to_string(**to);
  if (const auto* to = std::get_if<double*>(&o.to)) return fmt::format("{:g}", **to);
  if (const auto* to = std::get_if<std::string*>(&o.to)) return **to;
  return "";
}

std::string first_sentence(const Option& o) {
  std::string text = o.help.substr(0, std::min(o.help.find(". "), o.help.find("; ")));
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

std::string fault_of(const Option& o, const std::string& text) {
  if (!o.choices.empty()) {
    if (std::find(o.choices.begin(), o.choices.end(), text) != o.choices.end()) return "";
    const std::vector<std::string_view> choices(o.choices.begin(), o.choices.end());
    return fmt::format("'{}' is not one of {}{}", text, fmt::join(o.choices, ", "), did_you_mean(text, choices));
  }
  return holds<std::string, std::vector<std::string>, bool>(o) ? "" : number_fault(o, text);
}

}  // namespace tapedeck::tool
