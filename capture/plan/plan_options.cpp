#include <tapedeck/capture/plan/plan_options.h>

#include <tapedeck/capture/plan/strategy_names.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <deque>
#include <string>

namespace tapedeck {

namespace {

constexpr std::size_t kMostNames = 256;  // values of Strategy

// By value of Strategy.
std::deque<std::string>& names() {
  static std::deque<std::string> names = {"none", "regions", "greedy", "auto"};  // addresses are stable
  return names;
}

}  // namespace

const char* strategy_name(Strategy strategy) { return names().at(static_cast<std::size_t>(strategy)).c_str(); }

bool parse_strategy(std::string_view text, Strategy* strategy) {
  const auto at = std::find(names().begin(), names().end(), text);
  if (at == names().end()) return false;
  *strategy = static_cast<Strategy>(at - names().begin());
  return true;
}

Strategy add_strategy_name(std::string_view name) {
  Strategy known = Strategy::none;
  if (parse_strategy(name, &known)) return known;
  if (names().size() == kMostNames) throw UsageError("too many strategies");
  names().emplace_back(name);
  return static_cast<Strategy>(names().size() - 1);
}

std::int64_t default_alignment(DeviceType device) { return device == DeviceType::cuda ? 256 : 64; }
std::int64_t alignment_of(const PlanOptions& options) {
  return options.alignment == -1 ? default_alignment(options.device) : options.alignment;
}

}  // namespace tapedeck
