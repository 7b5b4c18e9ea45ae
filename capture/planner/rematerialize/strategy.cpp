// The list of registered strategies. Each strategy is one file of this folder, which registers itself.
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <tapedeck/capture/plan/strategy_names.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace tapedeck {

namespace {

struct Registered {
  StrategyEntry entry;
  Strategy value = Strategy::none;
};

std::deque<Registered>& registry() {
  static std::deque<Registered> strategies;  // addresses are stable
  return strategies;
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::vector<std::string_view> names = {strategy_name(Strategy::automatic)};
  for (const StrategyEntry* entry : all_strategies()) names.push_back(entry->name);
  const std::string near = did_you_mean(name, names);
  throw UsageError(fmt::format("unknown strategy '{}'{} There are:\n{}", name, near.empty() ? "." : near, list_strategies()));
}

}  // namespace

Strategy register_strategy(StrategyEntry entry) {
  const Strategy value = add_strategy_name(entry.name);
  if (value == Strategy::none || value == Strategy::automatic || find_strategy(value))
    throw UsageError(fmt::format("two strategies are named '{}'", entry.name));
  registry().push_back({entry, value});
  return value;
}

std::vector<const StrategyEntry*> all_strategies() {
  std::vector<const StrategyEntry*> strategies;
  for (const Registered& r : registry()) strategies.push_back(&r.entry);
  std::sort(strategies.begin(), strategies.end(),
            [](const StrategyEntry* a, const StrategyEntry* b) { return std::string_view(a->name) < b->name; });
  return strategies;
}

const StrategyEntry* find_strategy(Strategy strategy) {
  for (const Registered& r : registry())
    if (r.value == strategy) return &r.entry;
  return nullptr;
}

Strategy strategy_named(std::string_view name) {
  Strategy strategy = Strategy::none;
  if (!parse_strategy(name, &strategy)) throw_unknown(name);
  return strategy;
}

const StrategyEntry& strategy_entry(std::string_view name) {
  const StrategyEntry* entry = find_strategy(strategy_named(name));
  if (!entry) throw_unknown(name);
  return *entry;
}

bool is_in_auto(const StrategyEntry& strategy, std::size_t nodes, LookFor look_for) {
  if (strategy.in_auto != InAuto::finished) return strategy.in_auto == InAuto::always;
  return look_for != LookFor::draft && nodes <= kMostNodesForAll;
}

std::string list_strategies() {
  std::string lines;
  const auto add = [&](const char* name, const char* doc) { lines += fmt::format("  {:<10} {}\n", name, doc); };
  add("auto",
      "takes the best of all others but exact: with a budget as much as it needs, else what the user wished for (regions)");
  add("none", "keeps every value");
  for (const StrategyEntry* s : all_strategies()) add(s->name, s->doc);
  return lines;
}

}  // namespace tapedeck
