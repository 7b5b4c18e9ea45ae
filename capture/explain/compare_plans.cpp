#include <tapedeck/capture/explain/compare_plans.h>

#include <tapedeck/capture/plan/level_names.h>

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

using Figures = std::vector<std::pair<const char*, std::string>>;

Figures figures_of(const Plan& p) {
  return {{"strategy", p.strategy},
          {"level", level_name(p.level)},
          {"order", p.order},
          {"feasible", p.feasible ? "yes" : "no"},
          {"budget_bytes", p.budget_bytes < 0 ? "none" : std::to_string(p.budget_bytes)},
          {"peak_bytes", std::to_string(p.peak_bytes)},
          {"external_bytes", std::to_string(p.external_bytes)},
          {"arena_bytes", std::to_string(p.arena_bytes)},
          {"lower_bound_bytes", std::to_string(p.lower_bound_bytes)},
          {"floor_bytes", std::to_string(p.floor_bytes)},
          {"keep_all_peak_bytes", std::to_string(p.keep_all_peak_bytes)},
          {"alignment", std::to_string(p.alignment)},
          {"chunk_bytes", std::to_string(p.chunk_bytes)},
          {"chunks", std::to_string(p.chunks.size())},
          {"nodes", std::to_string(p.nodes)},
          {"recomputed_nodes", std::to_string(p.recomputed_nodes)},
          {"cost_us", fmt::format("{}", p.cost_us)},
          {"costs", p.costs},
          {"threads", std::to_string(p.threads)},
          {"segments", std::to_string(p.segments.size())},
          {"segment_shape", p.segment_rule.shape},
          {"split_phases", p.segment_rule.split_phases ? "yes" : "no"}};
}

const char* where_name(Where where) {
  switch (where) {
    case Where::nowhere:
      return "nowhere";
    case Where::arena:
      return "arena";
    case Where::input:
      return "input";
    case Where::state:
      return "state";
    case Where::constant:
      return "constant";
    case Where::output:
      return "output";
  }
  return "";
}

std::string placement_text(const Placement& p) {
  const std::string slot = p.slot == kNone ? "" : fmt::format(" #{}", p.slot);
  return fmt::format("{}{} {}, {}", where_name(p.where), slot, p.offset, reason_name(p.reason));
}

void compare_figures(const Plan& a, const Plan& b, PlanComparison* found) {
  const Figures x = figures_of(a), y = figures_of(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i].second != y[i].second) found->figures.push_back({x[i].first, x[i].second, y[i].second});
}

// Clones name the node that they repeat; counted, because a value can be made again more than once.
void compare_recomputed(const Plan& a, const Plan& b, PlanComparison* found) {
  std::set<std::string> names;
  std::unordered_map<std::string, std::pair<int, int>> clones;
  const auto count = [&](const Plan& p, bool is_a) {
    for (const Node& n : p.graph.nodes) {
      if (!n.origin.clone) continue;
      names.insert(n.origin.of.str());
      std::pair<int, int>& both = clones[n.origin.of.str()];
      ++(is_a ? both.first : both.second);
    }
  };
  count(a, true);
  count(b, false);
  const auto text = [](int times) {
    return times == 0 ? std::string() : fmt::format("{} time{}", times, times == 1 ? "" : "s");
  };
  for (const std::string& name : names)
    if (const auto [in_a, in_b] = clones[name]; in_a != in_b) found->recomputed.push_back({name, text(in_a), text(in_b)});
}

void compare_placements(const Plan& a, const Plan& b, PlanComparison* found) {
  std::unordered_map<std::string_view, ValueId> names;
  for (ValueId v = 0; v < b.graph.value_count(); ++v)
    if (!b.graph.values[v].name.empty()) names.emplace(b.graph.values[v].name.view(), v);
  for (ValueId v = 0; v < a.graph.value_count(); ++v) {
    const auto it = names.find(a.graph.values[v].name.view());
    if (it == names.end()) continue;
    ++found->placed;
    const std::string x = placement_text(a.values[v]), y = placement_text(b.values[it->second]);
    if (x != y) found->placements.push_back({a.graph.value_name(v), x, y});
  }
}

}  // namespace

PlanComparison compare_plans(const Plan& a, const Plan& b) {
  PlanComparison found;
  compare_figures(a, b, &found);
  compare_recomputed(a, b, &found);
  compare_placements(a, b, &found);
  return found;
}

}  // namespace tapedeck
