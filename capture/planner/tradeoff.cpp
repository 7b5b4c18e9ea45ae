// One PlanSearch for each strategy, one after the other, asked for the same budgets.
#include <tapedeck/capture/planner/tradeoff.h>

#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace tapedeck {

namespace {

constexpr int kMostPoints = 100'000;

// From the floor to the peak; fewer than asked for if there are not as many numbers.
std::vector<std::int64_t> budgets_between(std::int64_t floor, std::int64_t peak, int points) {
  const std::int64_t range = std::max<std::int64_t>(peak - floor, 0), steps = points - 1;
  std::vector<std::int64_t> budgets;
  for (std::int64_t i = 0; i < points; ++i) {
    const std::int64_t budget = floor + range / steps * i + range % steps * i / steps;
    if (budgets.empty() || budget > budgets.back()) budgets.push_back(budget);
  }
  return budgets;
}

TradeoffPoint point_of(const Plan& plan) {
  return {plan.budget_bytes,        plan.feasible,   plan.peak_bytes,      plan.cost_us, plan.recompute_cost_ratio(),
          plan.cost_lower_bound_us, plan.bound_from, plan.recomputed_nodes};
}

// Counts preparing a strategy as much work as all of its points, in whole numbers, so that what it tells never goes back.
class Counter {
 public:
  Counter(std::function<void(double)> tell, std::size_t strategies, int points)
      : tell_(std::move(tell)), points_(points), all_(2 * static_cast<std::int64_t>(strategies) * points) {}

  void prepared() { add(points_); }
  void point() { add(1); }
  // A strategy may have fewer points than were asked for.
  void strategy_done(std::size_t strategies) { add(2 * static_cast<std::int64_t>(strategies) * points_ - done_); }

 private:
  void add(std::int64_t part) {
    done_ += part;
    if (tell_) tell_(static_cast<double>(done_) / static_cast<double>(all_));
  }

  std::function<void(double)> tell_;
  std::int64_t points_, all_, done_ = 0;
};

class Sweep {
 public:
  Sweep(const Graph& graph, const TradeoffOptions& options)
      : graph_(graph), options_(options), counter_(options.plan.progress, strategies().size(), options.points) {}

  Tradeoff run() {
    try {
      for (const Strategy strategy : strategies()) {
        add_curve(strategy);
        counter_.strategy_done(found_.curves.size());
      }
      found_.complete = true;
    } catch (const Cancelled&) {
      if (!found_.curves.empty() && found_.curves.back().points.empty()) found_.curves.pop_back();
    }
    return std::move(found_);
  }

 private:
  std::vector<Strategy> strategies() const { return options_.strategies.empty() ? every_strategy() : options_.strategies; }

  void add_curve(Strategy strategy) {
    found_.curves.push_back({strategy, strategy_name(strategy), {}});
    PlanSearch& search = search_for(strategy);
    counter_.prepared();
    if (budgets_.empty()) begin(search);
    for (const std::int64_t budget : budgets_) {
      found_.curves.back().points.push_back(point_of(search.plan(budget, strategy)));
      counter_.point();
    }
  }

  // One search answers for all strategies that `auto` asks; each of the others needs its own.
  PlanSearch& search_for(Strategy strategy) {
    const StrategyEntry* entry = find_strategy(strategy);
    if (!entry || entry->in_auto != InAuto::never) {
      if (!shared_search_) shared_search_ = make_search(Strategy::automatic);
      if (shared_search_->answers_for(strategy)) return *shared_search_;
    }
    own_search_ = make_search(strategy);
    return *own_search_;
  }

  std::unique_ptr<PlanSearch> make_search(Strategy strategy) const {
    PlanOptions how = options_.plan;
    how.strategy = strategy;
    how.progress = {};
    return std::make_unique<PlanSearch>(graph_, how);
  }

  // The budgets of all strategies are those of the first one.
  void begin(PlanSearch& search) {
    found_.floor_bytes = search.floor();
    found_.keep_all_peak_bytes = search.keep_all_peak();
    budgets_ = budgets_between(found_.floor_bytes, found_.keep_all_peak_bytes, options_.points);
    const Plan all_kept = search.plan(found_.keep_all_peak_bytes);
    found_.keep_all_cost_us = all_kept.keep_all_cost_us;
    found_.costs = all_kept.costs;
  }

  const Graph& graph_;
  const TradeoffOptions& options_;
  Counter counter_;
  std::unique_ptr<PlanSearch> shared_search_, own_search_;
  std::vector<std::int64_t> budgets_;
  Tradeoff found_;
};

}  // namespace

std::vector<Strategy> every_strategy() {
  std::vector<Strategy> strategies = {Strategy::automatic, Strategy::none};
  for (const StrategyEntry* entry : all_strategies())
    if (!entry->check) strategies.push_back(strategy_named(entry->name));
  return strategies;
}

Tradeoff tradeoff(const Graph& graph, const TradeoffOptions& options) {
  if (options.points < 2 || options.points > kMostPoints)
    throw UsageError(fmt::format("a curve has 2 to {} points, not {}", kMostPoints, options.points));
  if (options.plan.strategy != Strategy::automatic)
    throw UsageError("name strategies in TradeoffOptions::strategies, and none in its options of a plan");
  return Sweep(graph, options).run();
}

std::string tradeoff_csv(const Tradeoff& tradeoff) {
  std::string text =
      "strategy,budget_bytes,feasible,peak_bytes,cost_us,cost_ratio,cost_lower_bound_us,bound_ratio,recomputed_nodes\n";
  for (const TradeoffCurve& curve : tradeoff.curves) {
    for (const TradeoffPoint& p : curve.points) {
      text += fmt::format("{},{},{},{},{},{},", curve.name, p.budget_bytes, p.feasible ? 1 : 0, p.peak_bytes, p.cost_us,
                          p.cost_ratio);
      const bool has_bound = p.cost_lower_bound_us > 0 && tradeoff.keep_all_cost_us > 0;
      text +=
          has_bound ? fmt::format("{},{},", p.cost_lower_bound_us, p.cost_lower_bound_us / tradeoff.keep_all_cost_us) : ",,";
      text += fmt::format("{}\n", p.recomputed_nodes);
    }
  }
  return text;
}

}  // namespace tapedeck
