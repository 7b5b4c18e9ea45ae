#include <tapedeck/viewer/model/tradeoff_points.h>

#include <fmt/format.h>

namespace tapedeck::viewer {

const TradeoffMark* nearest_mark(const std::vector<TradeoffMark>& marks, double peak, double ratio, double across, double up,
                                 double reach) {
  const TradeoffMark* best = nullptr;
  double least = reach * reach;
  for (const TradeoffMark& mark : marks) {
    const double dx = (static_cast<double>(mark.peak) - peak) / across, dy = (mark.ratio - ratio) / up;
    if (dx * dx + dy * dy > least) continue;
    least = dx * dx + dy * dy;
    best = &mark;
  }
  return best;
}

std::string tradeoff_points_csv(const std::vector<KnownPlan>& known, const std::string& strategy, const Tradeoff* curves,
                                const std::vector<MeasuredPoint>& measured) {
  std::string text =
      "strategy,budget_bytes,peak_bytes,cost_ratio,bound_ratio,measured_peak_bytes,measured_us,measured_ratio,"
      "deviation_percent\n";
  const auto line = [&](const std::string& name, std::int64_t budget, std::int64_t peak, double ratio, double bound) {
    text += fmt::format("{},{},{},{},{},,,,\n", name, budget, peak, ratio, bound > 0 ? fmt::format("{}", bound) : "");
  };
  for (const KnownPlan& p : known)
    if (p.feasible) line(strategy, p.budget, p.peak, p.ratio, p.bound);
  for (const MeasuredPoint& p : measured)
    text += fmt::format("{},{},{},{},,{},{},{},{:.4f}\n", strategy, p.budget, p.planned_peak_bytes, p.planned_ratio,
                        p.observed_peak_bytes, p.step.median_us, p.ratio(), 100 * deviation(p.ratio(), p.planned_ratio));
  if (curves == nullptr) return text;
  for (const TradeoffCurve& curve : curves->curves)
    for (const TradeoffPoint& p : curve.points)
      if (p.feasible)
        line(curve.name, p.budget_bytes, p.peak_bytes, p.cost_ratio,
             curves->keep_all_cost_us > 0 ? p.cost_lower_bound_us / curves->keep_all_cost_us : 0);
  return text;
}

}  // namespace tapedeck::viewer
