#include <tapedeck/capture/plan/plan_options.h>

namespace tapedeck {

const char* strategy_name(Strategy strategy) {
  constexpr const char* names[] = {"none", "regions", "greedy", "auto"};
  return names[static_cast<int>(strategy)];
}

std::int64_t default_alignment(DeviceType device) { return device == DeviceType::cuda ? 256 : 64; }
std::int64_t alignment_of(const PlanOptions& options) {
  return options.alignment == -1 ? default_alignment(options.device) : options.alignment;
}

bool parse_strategy(std::string_view text, Strategy* strategy) {
  for (Strategy s : {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic}) {
    if (text != strategy_name(s)) continue;
    *strategy = s;
    return true;
  }
  return false;
}

}  // namespace tapedeck
