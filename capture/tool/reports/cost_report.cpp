#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

std::string calibrate_report(const std::string& path, const Calibration& c) {
  Json ops = Json::array();
  for (const auto& [name, r] : c.ops)
    ops.push_back({{"op", name},
                   {"version", r.version},
                   {"call_us", r.call_us},
                   {"us_per_flop", r.us_per_flop},
                   {"us_per_byte", r.us_per_byte},
                   {"us_per_far_byte", r.us_per_far_byte},
                   {"points", r.points}});
  Json ratios = Json::object();
  for (int k = 0; k < kOpKinCount; ++k) ratios[kin_name(static_cast<OpKin>(k))] = c.kin_ratio[k];
  return text_of({{"schema", "tapedeck.calibrate/1"},
                  {"file", path},
                  {"machine", c.machine},
                  {"program", c.program},
                  {"quick", c.quick},
                  {"kin_ratio", ratios},
                  {"peaks", peaks_json(c.peaks)},
                  {"ops", ops}});
}

std::string cost_check_report(const std::vector<CostCheck>& files) {
  Json list = Json::array();
  for (const CostCheck& f : files) {
    Json errors = Json::object();
    for (const CostError& e : f.errors)
      errors[e.source] = {{"median", e.median}, {"p90", e.p90}, {"total_ratio", e.total_ratio}};
    list.push_back({{"file", f.file}, {"nodes", f.nodes}, {"step_us", f.step_us}, {"log_error", errors}});
  }
  return text_of({{"schema", "tapedeck.cost_check/1"}, {"files", list}});
}

}  // namespace tapedeck::tool
