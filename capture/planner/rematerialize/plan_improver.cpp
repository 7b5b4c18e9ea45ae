#include <tapedeck/capture/planner/rematerialize/plan_improver.h>

#include <tapedeck/capture/planner/schedules/take_back.h>

#include <algorithm>
#include <cmath>
#include <queue>

namespace tapedeck {

namespace {

constexpr int kImproverTrials = 12;                      // recipes tried for one choice, per way of getting operands
constexpr int kImproverEstimates = 48;                   // recipes costed for one choice
constexpr int kMostRuined = 4;                           // runs taken back in one round
constexpr double kNoise = 0.7;                           // of rounds: scores are multiplied by e to the power of up to this
constexpr int kPatience = 48, kPatienceOfSmall = 2'000;  // rounds without a cheaper plan, after which a bound is left
constexpr int kFewestSteps = 512;                        // lower_peak() ends when steps of this part of the peak fail

}  // namespace

PlanImprover::PlanImprover(const Facts& facts, std::uint64_t seed, PlanArchive* archive)
    : facts_(facts),
      archive_(*archive),
      schedule_(facts),
      give_up_(facts, &schedule_),
      random_(seed),
      forbidden_(facts.graph->values.size(), 0),
      live_(facts.graph->nodes.size(), 0),
      stages_over_(facts.graph->nodes.size() + 1, 0),
      bytes_over_(facts.graph->nodes.size() + 1, 0),
      stages_over_before_(stages_over_),
      bytes_over_before_(bytes_over_) {}

void PlanImprover::go_to(const Changes& plan) { make_steps(steps_between(changes_of(schedule_), plan), &schedule_); }

double PlanImprover::offer() {
  Changes changes = changes_of(schedule_);
  const double cost = cost_of(changes, facts_);
  archive_.offer(live_peak(), {cost, std::move(changes)});
  return cost;
}

// ---- giving up ----

bool PlanImprover::lower_to(std::int64_t live_bytes, double noise) {
  while (live_peak() > live_bytes)
    if (!give_up_one(live_bytes, noise)) return false;
  return true;
}

void PlanImprover::measure_excess(std::int64_t live_bytes) {
  schedule_.read_live(&live_);
  for (std::size_t stage = 0; stage < live_.size(); ++stage) {
    const std::int64_t over = std::max<std::int64_t>(live_[stage] - live_bytes, 0);
    stages_over_[stage + 1] = stages_over_[stage] + (over > 0);
    bytes_over_[stage + 1] = bytes_over_[stage] + over;
  }
  looked_at_ += static_cast<std::int64_t>(live_.size()) / 8;
}

// The bytes over the bound, summed over stages, that go with the gap. A value that the stage is the last to read before the gap
// may go in that stage itself.
double PlanImprover::excess_over(const Gap& gap, NodeId stage) const {
  const auto first = static_cast<std::size_t>(gap.from) + (gap.from < stage ? 1 : 0), last = static_cast<std::size_t>(gap.to);
  const double stages = static_cast<double>(stages_over_[last] - stages_over_[first]);
  return std::min(stages * static_cast<double>(facts_.bytes[gap.value]),
                  static_cast<double>(bytes_over_[last] - bytes_over_[first]));
}

std::vector<GapOption> PlanImprover::options_at(NodeId stage, double noise) {
  std::vector<GapOption> options;
  const double tiny = 1e-9 + facts_.keep_all_cost * 1e-9;
  for (const Gap& gap : schedule_.gaps()) {
    if (gap.from > stage || gap.to <= stage || !give_up_.may_give_up(gap) || forbidden_[gap.value]) continue;
    const double factor = noise > 0 ? std::exp(noise * (2 * random_.unit() - 1)) : 1.0;
    options.push_back({factor * excess_over(gap, stage) / (give_up_.cost_of_first(gap) + tiny), gap, false});
  }
  looked_at_ += static_cast<std::int64_t>(schedule_.gaps().size()) / 8;
  return options;
}

bool PlanImprover::give_up_one(std::int64_t live_bytes, double noise) {
  measure_excess(live_bytes);
  const Limit limit{schedule_.peak().stage, live_bytes + 1};
  const std::vector<GapOption> options = options_at(limit.stage, noise);
  const std::int64_t first_way = noise > 0 ? random_.below(2) : 0;
  for (std::int64_t i = 0; i < 4; ++i)
    if (try_options(options, kWays[i ^ first_way], limit)) return true;
  return false;
}

// Best first. A score that counts only the value's own node is too high at worst, so an option is costed when its turn comes,
// and tried when it still leads after that.
bool PlanImprover::try_options(const std::vector<GapOption>& options, Ways ways, const Limit& limit) {
  std::priority_queue<GapOption> queue(options.begin(), options.end());
  Recipe recipe;
  int trials = 0, estimates = 0;
  while (!queue.empty() && trials < kImproverTrials && estimates < kImproverEstimates) {
    GapOption option = queue.top();
    queue.pop();
    if (!give_up_.find(option.gap, ways, limit, &recipe)) {
      ++estimates;
      continue;
    }
    if (!option.exact) {
      ++estimates;
      const double tiny = 1e-9 + facts_.keep_all_cost * 1e-9;
      const double share =
          1 - static_cast<double>(recipe.kept_across_limit) / static_cast<double>(facts_.bytes[option.gap.value]);
      if (share <= 0) continue;
      option.score *= share * (give_up_.cost_of_first(option.gap) + tiny) / (std::max(recipe.cost, 0.0) + tiny);
      option.exact = true;
      if (!queue.empty() && option < queue.top()) {
        queue.push(option);
        continue;
      }
    }
    ++trials;
    if (try_recipe(option.gap, recipe, limit)) return true;
  }
  return false;
}

// A choice counts if fewer bytes are over the bound after it, summed over the stages. If it does not, the sums from before it
// are put back. That counts as work like measuring them again.
bool PlanImprover::try_recipe(const Gap& gap, const Recipe& recipe, const Limit& limit) {
  const std::size_t before = schedule_.journal().size();
  const std::int64_t over = bytes_over_.back();
  give_up_.apply(gap, recipe);
  stages_over_.swap(stages_over_before_);
  bytes_over_.swap(bytes_over_before_);
  measure_excess(limit.bytes - 1);
  if (bytes_over_.back() < over) return true;
  schedule_.undo_to(before);
  schedule_.refresh();
  stages_over_.swap(stages_over_before_);
  bytes_over_.swap(bytes_over_before_);
  looked_at_ += static_cast<std::int64_t>(live_.size()) / 8;
  return false;
}

// ---- rounds ----

double PlanImprover::clean_up(std::int64_t live_bytes) {
  take_back_all_within(live_bytes, facts_, &schedule_);
  return offer();
}

void PlanImprover::take_back_some() {
  std::vector<Step> runs = repeated_runs(facts_, schedule_);
  double total = 0;
  for (const Step& run : runs) total += facts_.cost[run.node];
  for (std::int64_t left = 1 + random_.below(kMostRuined); left > 0 && !runs.empty(); --left) {
    double at = random_.unit() * total;
    std::size_t i = 0;
    while (i + 1 < runs.size() && (at -= facts_.cost[runs[i].node]) >= 0) ++i;
    const Step run = runs[i];
    total -= facts_.cost[run.node];
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    if (!may_take_back(run, facts_, schedule_)) continue;
    take_back(run, &schedule_);
    for (ValueId v : facts_.makes(run.node)) {
      forbidden_[v] = 1;
      forbidden_now_.push_back(v);
    }
  }
}

// Makes room for others: values that are kept across the stage with the most live bytes of a random stretch.
void PlanImprover::give_up_some(std::int64_t live_bytes) {
  const NodeId stage = static_cast<NodeId>(random_.below(schedule_.stage_count()));
  const Limit limit{stage, live_bytes + 1};
  std::vector<Gap> gaps;
  for (const Gap& gap : schedule_.gaps())
    if (gap.from < stage && gap.to > stage && give_up_.may_give_up(gap)) gaps.push_back(gap);
  looked_at_ += static_cast<std::int64_t>(schedule_.gaps().size()) / 8;
  if (gaps.empty()) return;
  const Gap gap = gaps[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(gaps.size())))];
  Recipe recipe;
  if (give_up_.find(gap, kWays[random_.below(4)], limit, &recipe)) give_up_.apply(gap, recipe);
}

void PlanImprover::ruin(std::int64_t live_bytes) {
  if (random_.below(3) == 0)
    give_up_some(live_bytes);
  else
    take_back_some();
}

void PlanImprover::improve(std::int64_t live_bytes, std::int64_t work_left, double least_cost) {
  const std::int64_t end = work() + work_left;
  double cost = recomputed_cost();
  const double tolerance = 1e-9 * (facts_.keep_all_cost + 1e-9);
  const int patience = kPatience + kPatienceOfSmall / std::max(schedule_.stage_count(), 1);
  int failures = 0;
  while (work() < end && cost > least_cost + tolerance && failures < patience) {
    const std::size_t before = schedule_.journal().size();
    ++looked_at_;
    ruin(live_bytes);
    const bool lowered = lower_to(live_bytes, kNoise * random_.unit());
    for (ValueId v : forbidden_now_) forbidden_[v] = 0;
    forbidden_now_.clear();
    if (lowered) {
      const double now = clean_up(live_bytes);
      if (now <= cost + tolerance) {
        failures = now < cost - tolerance ? 0 : failures + 1;
        cost = now;
        continue;
      }
    }
    ++failures;
    schedule_.undo_to(before);
    schedule_.refresh();
  }
}

void PlanImprover::lower_peak(std::int64_t work_left) {
  const std::int64_t end = work() + work_left;
  std::int64_t parts = 32;  // a step lowers the peak by one of these parts of it
  int failures = 0;
  while (work() < end && parts <= kFewestSteps) {
    const std::int64_t peak = live_peak(), target = peak - std::max<std::int64_t>(peak / parts, 1);
    if (target < 0) return;
    const std::size_t before = schedule_.journal().size();
    ++looked_at_;
    if (failures > 0) ruin(peak);
    const bool lowered = lower_to(target, failures > 0 ? kNoise * random_.unit() : 0.0);
    for (ValueId v : forbidden_now_) forbidden_[v] = 0;
    forbidden_now_.clear();
    if (lowered) {
      clean_up(target);
      failures = 0;
      continue;
    }
    schedule_.undo_to(before);
    schedule_.refresh();
    if (++failures % 24 == 0) parts *= 2;
  }
}

}  // namespace tapedeck
