// The JSON of `sweep`: the curve of each strategy.
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

namespace {

Json point_json(const TradeoffPoint& p) {
  Json j = {{"budget_bytes", p.budget_bytes}, {"feasible", p.feasible},     {"peak_bytes", p.peak_bytes},
            {"cost_us", p.cost_us},           {"cost_ratio", p.cost_ratio}, {"recomputed_nodes", p.recomputed_nodes}};
  j["cost_lower_bound_us"] = p.cost_lower_bound_us > 0 ? Json(p.cost_lower_bound_us) : Json(nullptr);
  j["bound_from"] = p.bound_from;
  return j;
}

}  // namespace

std::string sweep_report(const Tradeoff& found) {
  Json curves = Json::array();
  for (const TradeoffCurve& c : found.curves) {
    Json points = Json::array();
    for (const TradeoffPoint& p : c.points) points.push_back(point_json(p));
    curves.push_back({{"strategy", c.name}, {"points", points}});
  }
  return text_of({{"schema", "tapedeck.sweep/1"},
                  {"floor_bytes", found.floor_bytes},
                  {"keep_all_peak_bytes", found.keep_all_peak_bytes},
                  {"keep_all_cost_us", found.keep_all_cost_us},
                  {"costs", found.costs},
                  {"complete", found.complete},
                  {"curves", curves}});
}

}  // namespace tapedeck::tool
