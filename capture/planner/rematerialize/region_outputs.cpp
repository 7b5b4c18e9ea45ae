#include <tapedeck/capture/planner/rematerialize/region_outputs.h>

#include <tapedeck/capture/planner/schedules/decisions.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::size_t kOutputTrials = 48;  // outputs tried at a peak, per way of getting operands
constexpr std::int64_t kMostOutputWork =
    1'000'000;  // Schedule::work() and clones costed: a step without a budget waits for this, too
constexpr std::int64_t kMostClonesPerNode = 4;

}  // namespace

void RegionOutputs::give_up() {
  const std::int64_t most_clones = schedule_.clone_count() + kMostClonesPerNode * facts_.graph->node_count();
  const std::int64_t most_work = schedule_.work() + kMostOutputWork;
  while (schedule_.clone_count() < most_clones && schedule_.work() + give_up_.costed() < most_work) {
    watch_.check();
    peak_ = schedule_.peak();
    if (!improve()) return;
    const std::int64_t now = schedule_.peak().bytes;
    if (now < choices_.points.back().live_peak)
      choices_.points.push_back({static_cast<std::int32_t>(choices_.decisions.size()), schedule_.journal().size(), now, true});
  }
}

// The gaps of outputs that end in a later phase, most bytes x span first. A gap of one stage has nothing between its readers.
std::vector<Gap> RegionOutputs::gaps_at_peak() const {
  std::vector<Gap> gaps;
  for (const Gap& gap : schedule_.gaps())
    if (gap.from <= peak_.stage && peak_.stage < gap.to && gap.to - gap.from >= 2 && give_up_.may_give_up(gap) &&
        marks_.output[gap.value] && marks_.later[gap.to])
      gaps.push_back(gap);
  const auto area = [&](const Gap& gap) { return static_cast<double>(facts_.bytes[gap.value]) * (gap.to - gap.from); };
  std::sort(gaps.begin(), gaps.end(), [&](const Gap& a, const Gap& b) {
    return area(a) != area(b) ? area(a) > area(b) : a.value != b.value ? a.value < b.value : a.from < b.from;
  });
  if (gaps.size() > kOutputTrials) gaps.resize(kOutputTrials);
  return gaps;
}

bool RegionOutputs::improve() {
  const std::vector<Gap> gaps = gaps_at_peak();
  for (const Ways& ways : kWays)
    for (const Gap& gap : gaps)
      if (const auto recipe = recipe_for(gap, ways); recipe && try_recipe(gap, *recipe)) return true;
  return false;
}

// None if a node outside of the regions would have to run again.
std::optional<Recipe> RegionOutputs::recipe_for(const Gap& gap, const Ways& ways) {
  Recipe recipe;
  const bool found = give_up_.find(gap, ways, {peak_.stage, peak_.bytes}, &recipe);
  const auto inside = [&](NodeId n) { return marks_.inside[n] != 0; };
  if (!found || !std::all_of(recipe.clones.begin(), recipe.clones.end(), inside)) return std::nullopt;
  return recipe;
}

bool RegionOutputs::try_recipe(const Gap& gap, const Recipe& recipe) {
  const std::size_t before = schedule_.journal().size();
  give_up_.apply(gap, recipe);
  const LiveTree::Peak now = schedule_.peak();
  if (now.bytes < peak_.bytes || (now.bytes == peak_.bytes && now.stages < peak_.stages)) {
    note_decision(gap, before);
    return true;
  }
  schedule_.undo_to(before);
  schedule_.refresh();
  return false;
}

void RegionOutputs::note_decision(const Gap& gap, std::size_t journal_before) {
  const Graph& graph = *facts_.graph;
  Decision d;
  d.value = graph.value_name(gap.value);
  d.bytes = facts_.bytes[gap.value];
  d.span = gap.to - gap.from - 1;
  count_runs(schedule_, journal_before, facts_, &d);
  d.live_peak_bytes = facts_.external_bytes + schedule_.peak().bytes;
  d.reason = fmt::format("output of checkpoint region {}, kept for {} steps across the peak at `{}`, runs again before `{}`",
                         graph.nodes[graph.values[gap.value].node].origin.region, d.span, graph.node_text(peak_.stage),
                         graph.node_text(gap.to));
  choices_.decisions.push_back(std::move(d));
}

}  // namespace tapedeck
