// What memory costs in time: for each strategy, plans at budgets from the floor to the peak with everything kept.
//
//     budget         none     greedy     bound             a cost of 1 is that of keeping everything
//     9,004             -       1.31      1.22             - : the strategy has no plan that fits
//     11,464            -       1.12      1.09
//     16,384         1.00       1.00      1.00
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A plan for one budget, without the plan. Where no plan of the strategy fits, the numbers are those of the lowest plan found.
struct TradeoffPoint {
  std::int64_t budget_bytes = 0;
  bool feasible = false;
  std::int64_t peak_bytes = 0;
  double cost_us = 0;
  double cost_ratio = 1;           // to the cost of keeping everything
  double cost_lower_bound_us = 0;  // as in Plan
  std::string bound_from;          // as in Plan
  std::int32_t recomputed_nodes = 0;
};

struct TradeoffCurve {
  Strategy strategy = Strategy::automatic;
  std::string name;                   // of the strategy
  std::vector<TradeoffPoint> points;  // ascending in budget
};

struct Tradeoff {
  std::int64_t floor_bytes = 0;  // of the first strategy's search
  std::int64_t keep_all_peak_bytes = 0;
  double keep_all_cost_us = 0;
  std::string costs;                  // as Plan::costs
  std::vector<TradeoffCurve> curves;  // in the order of the strategies, none of them empty
  bool complete = false;              // false: it was cancelled, and points are missing at the end
};

struct TradeoffOptions {
  int points = 16;                        // budgets, evenly spread; the floor and the peak are two of them
  std::vector<Strategy> strategies = {};  // empty: every_strategy()
  // Without a budget and a strategy. `cancel` ends the search and keeps the points that were found; `progress` counts all of
  // the points.
  PlanOptions plan = {};
};

// `auto`, `none`, and every registered strategy that plans any graph, sorted by name.
std::vector<Strategy> every_strategy();

// Each point is that of make_plan with this budget and strategy. Throws UsageError for options that make no sense and as
// make_plan, but not Cancelled.
Tradeoff tradeoff(const Graph& graph, const TradeoffOptions& options = {});

// A header line and a line for each point: strategy,budget_bytes,feasible,peak_bytes,cost_us,cost_ratio,cost_lower_bound_us,
// bound_ratio,recomputed_nodes. The bound is empty where no plan fits.
std::string tradeoff_csv(const Tradeoff& tradeoff);

}  // namespace TAPEDECK_API
