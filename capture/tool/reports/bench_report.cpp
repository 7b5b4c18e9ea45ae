#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

namespace {

Json row_json(const BenchRow& row) {
  const BenchResult& r = row.result;
  const auto ms = [](double ns) { return ns / 1e6; };
  const auto at = [&](double percent) { return ms(static_cast<double>(percentile(r.run_ns, percent))); };
  Json j = {
      {"name", row.name}, {"nodes", row.nodes}, {"segments", row.segments}, {"threads", r.threads}, {"runs", r.run_ns.size()}};
  j["warmup_runs"] = r.warmup_runs;
  j["median_ms"] = at(50);
  j["p90_ms"] = at(90);
  j["p99_ms"] = at(99);
  j["min_ms"] = at(1e-9);
  j["max_ms"] = at(100);
  j["timeline_runs"] = r.timeline_runs;
  const bool split = r.timeline_runs > 0;
  j["in_kernels_ms"] = split ? Json(ms(r.kernels_ns)) : Json(nullptr);
  j["outside_kernels_ms"] = split ? Json(ms(r.outside_ns)) : Json(nullptr);
  j["outside_kernels_percent"] = split ? Json(100 * r.outside_share()) : Json(nullptr);
  j["threads_busy_percent"] = split ? Json(100 * r.thread_busy) : Json(nullptr);
  j["clock_read_ns"] = r.clock_read_ns;
  j["planned_peak_bytes"] = row.planned_peak_bytes;
  j["observed_peak_bytes"] = row.observed_peak_bytes;
  j["speedup"] = row.speedup;
  j["plan_threads"] = row.plan_threads;
  j["costs"] = row.costs;
  if (row.roofline) j["roofline"] = roofline_json(*row.roofline);
  if (row.on_device) {
    j["steps_per_wait"] = r.steps_per_wait;
    j["launch_ms"] = ms(static_cast<double>(percentile(r.launch_ns, 50)));
    j["on_device"] = device_json(*row.on_device);
  }
  return j;
}

}  // namespace

std::string bench_report(const std::vector<BenchRow>& rows, double total_s, bool interrupted, const std::string& device) {
  Json list = Json::array();
  for (const BenchRow& row : rows) list.push_back(row_json(row));
  const Json j = {{"schema", "tapedeck.bench/1"},
                  {"device", device},
                  {"interrupted", interrupted},
                  {"total_s", total_s},
                  {"results", list}};
  return text_of(j);
}

}  // namespace tapedeck::tool
