#include <tapedeck/capture/planner/requests/effort.h>

#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <algorithm>

namespace tapedeck {
namespace {

// Shares of the time of a step; each kind of work takes its share at most.
constexpr double kShareOfOrder = 0.01, kShareOfJoins = 0.01, kShareOfGreedy = 0.01, kShareOfSearch = 0.02;
// Microseconds, measured: a look-up of a set of nodes; a trial of joins, for each node; one more order of the graph, for each
// node; ten greedy attempts, for each buffer.
constexpr double kUsOfLookUp = 0.015, kUsOfTrialNode = 0.4, kUsOfOrderedNode = 8, kUsOfAttempts = 10;

constexpr std::int64_t kLeastOrderWork = 60'000;  // look-ups; even the smallest step is worth them
constexpr double kMostSearchUs = 1e6;
constexpr double kMostSteps = 110'000;  // of an exact search; the offsets of 350 values hardly get better with twice as many
constexpr double kQuickSearchUs = 1e4;
constexpr int kRetries = 12;  // of greedy placement where nobody waits for more

bool is_for_a_budget(Strategy strategy) {
  const StrategyEntry* entry = find_strategy(strategy);
  return entry && entry->taken_for == TakenFor::budget;
}

}  // namespace

LookFor what_to_look_for(const PlanOptions& options) {
  const bool has_budget = options.budget >= 0 || options.budget_percent >= 0;
  return has_budget || is_for_a_budget(options.strategy) ? LookFor::budgets : LookFor::floor;
}

bool PlanEffort::looks_for_floor() const { return options_.find_floor || what_to_look_for(options_) == LookFor::budgets; }

OrderOptions PlanEffort::order(const StepSize& step) const {
  OrderOptions how;
  how.split_phases = options_.split_phases;
  how.cancel = options_.cancel;
  if (looks_for_floor()) return how;
  const auto n = static_cast<std::int64_t>(step.nodes);
  how.most_work =
      std::max(std::min(kLeastOrderWork, n * n), static_cast<std::int64_t>(kShareOfOrder * step.cost_us / kUsOfLookUp));
  return how;
}

int PlanEffort::join_trials(const StepSize& step) const {
  if (looks_for_floor()) return kMostTrials;
  const double trials =
      kShareOfJoins * step.cost_us / (kUsOfTrialNode * static_cast<double>(std::max<std::size_t>(step.nodes, 1)));
  return std::clamp(static_cast<int>(std::min(trials, 1e6)), 1, kMostTrials);
}

bool PlanEffort::orders_joins(const StepSize& step) const {
  return looks_for_floor() || kShareOfJoins * step.cost_us > kUsOfOrderedNode * static_cast<double>(step.nodes);
}

// Bytes that alignment costs are not worth waiting for where the floor is not asked for.
std::int64_t PlanEffort::slack() const { return looks_for_floor() || options_.place_work >= 0 ? 0 : alignment_of(options_); }

// Best fit, which half of the attempts are, seldom wins.
bool PlanEffort::is_hurried(const StepSize& step) const {
  return slack() > 0 && kUsOfAttempts * static_cast<double>(step.nodes) > kShareOfGreedy * step.cost_us;
}

Placing PlanEffort::greedy(const StepSize& step) const {
  Placing how;
  how.alignment = alignment_of(options_);
  how.chunk_bytes = options_.chunk_bytes;
  how.slack = slack();
  how.first_fit_only = is_hurried(step);
  return how;
}

Placing PlanEffort::search(const StepSize& step, const Layout& start) const {
  Placing how = greedy(step);
  how.work = place_work(step);
  how.start = &start;
  how.cancel = options_.cancel;
  how.retries = slack() > 0 ? kRetries : 0;
  return how;
}

Placing PlanEffort::quick(const StepSize& step, const Layout& start) const {
  Placing how = search(step, start);
  how.work = std::min(how.work, place_steps(kQuickSearchUs, step.values));
  return how;
}

// A second at most; of small graphs, of which a program may have many, little.
std::int64_t PlanEffort::place_work(const StepSize& step) const {
  if (options_.place_work >= 0) return options_.place_work;
  const double us = looks_for_floor() ? kMostSearchUs : std::min(kMostSearchUs, kShareOfSearch * step.cost_us);
  const double n = std::max(static_cast<double>(step.values), 10.0);
  return std::min(place_steps(us, step.values), static_cast<std::int64_t>(std::min(kMostSteps, n * n * n * n / 5'000)));
}

}  // namespace tapedeck
