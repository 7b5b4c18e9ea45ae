// Points of cost over peak, from plans that are known and from the curves of all strategies.
#pragma once

#include <tapedeck/capture/planner/tradeoff.h>
#include <tapedeck/viewer/model/measurements.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// A known plan as a point.
struct KnownPlan {
  std::int64_t budget = -1, peak = 0;
  double ratio = 1;  // of the cost to that of keeping everything
  double bound = 0;  // of the least cost of any plan that fits to the same; 0: not known
  bool feasible = true;
};

// A point that is drawn: its numbers, its strategy, and the budget that gives its plan.
struct TradeoffMark {
  std::int64_t budget = 0, peak = 0;
  double ratio = 1;
  std::string strategy;
};

// The mark nearest to a place, where distances count in units of a plot: `across` bytes and `up` of ratio are one unit each.
// Null if none is within `reach` units.
const TradeoffMark* nearest_mark(const std::vector<TradeoffMark>& marks, double peak, double ratio, double across, double up,
                                 double reach);

// strategy,budget_bytes,peak_bytes,cost_ratio,bound_ratio,measured_peak_bytes,measured_us,measured_ratio,deviation_percent: the
// known plans, the measured ones, then the curves. The last four cells of plans that were not measured are empty; the deviation
// is that of the measured ratio from cost_ratio.
std::string tradeoff_points_csv(const std::vector<KnownPlan>& known, const std::string& strategy, const Tradeoff* curves,
                                const std::vector<MeasuredPoint>& measured = {});

}  // namespace tapedeck::viewer
