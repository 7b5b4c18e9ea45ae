#include <tapedeck/viewer/plan/peak_help.h>

#include <tapedeck/capture/cost/cost_model.h>

#include <algorithm>
#include <tuple>

namespace tapedeck::viewer {

PeakExplanation explained_peak(const PlanModel& model) {
  return explain_peak(model.plan(), cost_nodes(model.graph(), model.costs()).us);
}

bool lowers_the_peak(const PeakExplanation& explanation, const PeakTenant& tenant) {
  return (tenant.recomputable && tenant.peak_after < explanation.live_bytes) || tenant.order_helps;
}

std::vector<std::size_t> by_help(const PeakExplanation& explanation) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < explanation.alive.size(); ++i)
    if (!explanation.alive[i].advice.empty()) order.push_back(i);
  const auto rank = [&](std::size_t i) {
    const PeakTenant& t = explanation.alive[i];
    const bool lowers = lowers_the_peak(explanation, t);
    const std::int64_t peak = t.recomputable ? std::min(t.peak_after, explanation.live_bytes) : explanation.live_bytes;
    return std::tuple(!lowers, lowers ? peak : 0, lowers ? t.recompute_us : 0);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

}  // namespace tapedeck::viewer
