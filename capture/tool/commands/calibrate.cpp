// calibrate: measures the ops and the peaks of this machine, prints the calibration in use, or prints how far costs are off.
// For --check it replays a file and compares the cost of every node, from each source, with its measured time.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/peaks.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/measure/calibrate.h>
#include <tapedeck/capture/measure/measure_peaks.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/threads.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

namespace tapedeck::tool {

namespace {

struct CalibrateCommandOptions {
  std::string output;              // empty: where the other commands look for it
  std::vector<std::string> check;  // files to replay and compare costs with; nothing is calibrated
  bool quick = false;
  bool show = false;
  bool json = false;
};

std::vector<Option> calibrate_table(CalibrateCommandOptions& o) {
  return {
      {.name = "--quick", .to = &o.quick, .help = "Measure fewer and smaller sizes: some seconds instead of half a minute."},
      {.name = "--show", .to = &o.show, .help = "Print the calibration in use and measure nothing."},
      {.name = "--check",
       .metavar = "FILE",
       .to = &o.check,
       .help = "Replay these files and print how far costs are off. Ops are not measured.",
       .several = Several::words},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the calibration here.",
       .group = "Output",
       .fallback = "the place where plan, replay and bench look: TAPEDECK_CALIBRATION, else the cache folder of the user"},
      json_option(&o.json),
  };
}

std::string peak_lines(const Calibration& c) {
  std::string text;
  for (const ThreadPeaks& peaks : c.peaks) text += "peaks, " + peaks_text(peaks) + "\n";
  return text;
}

std::string listing(const Calibration& c) {
  std::string text = fmt::format("{}, {}{}\n", c.machine, c.program, c.quick ? ", quick" : "") + peak_lines(c);
  text += fmt::format("{:<28} {:>10} {:>12} {:>10} {:>10} {:>7}\n", "op", "call us", "Gflop/s", "GB/s", "far GB/s", "sizes");
  const auto per_ns = [](double us) { return us > 0 ? fmt::format("{:.2f}", 1e-3 / us) : std::string("-"); };
  for (const auto& [name, r] : c.ops)
    text += fmt::format("{:<28} {:>10.3f} {:>12} {:>10} {:>10} {:>7}\n", name, r.call_us, per_ns(r.us_per_flop),
                        per_ns(r.us_per_byte), per_ns(r.us_per_far_byte > 0 ? r.us_per_byte + r.us_per_far_byte : 0), r.points);
  text += "other ops, of their built-in estimate:";
  for (int k = 0; k < kOpKinCount; ++k)
    text += fmt::format(" {} x{:.2f}{}", kin_name(static_cast<OpKin>(k)), c.kin_ratio[k], k + 1 < kOpKinCount ? "," : "\n");
  return text;
}

int show(const std::string& path, bool json) {
  std::string why;
  const std::optional<Calibration> c = load_calibration(path, &why);
  if (!c) {
    const std::string place = path.empty() ? "use" : path;
    throw FileError(why.empty() ? fmt::format("no calibration in {}; plans use the built-in estimates", place) : why);
  }
  answer(json ? calibrate_report(path, *c) : fmt::format("{}: ", path) + listing(*c));
  return kOk;
}

std::vector<ThreadPeaks> peaks_of_one_and_all_threads(bool quick) {
  Progress progress("measuring peaks");
  PeakOptions how;
  how.threads = {1, thread_count()};
  how.quick = quick;
  how.cancel = &interrupted();
  how.progress = [&](double fraction) { progress.at(fraction); };
  return measure_peaks(how);
}

int measure(const std::string& path, bool quick, bool json) {
  if (path.empty())
    throw UsageError(
        "a calibration has no place here (TAPEDECK_CALIBRATION is off, or there is no home folder); name a file with -o");
  CalibrateOptions how;
  how.quick = quick;
  how.cancel = &interrupted();
  const auto begin = std::chrono::steady_clock::now();
  Calibration c;
  {
    Progress progress("calibrating");
    how.progress = [&](double fraction) { progress.at(fraction); };
    c = tapedeck::calibrate(how);
  }
  c.peaks = peaks_of_one_and_all_threads(quick);
  save_calibration(path, c);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  answer(json ? calibrate_report(path, c)
              : fmt::format("wrote {}: rates of {} ops, measured in {:.1f} s\n", path, c.ops.size(), seconds) + peak_lines(c));
  return kOk;
}

// ---- how far costs are off ----

// Steps of a file in turns: one half is the profile, the other what it is judged by.
class Checked {
 public:
  explicit Checked(const std::string& path)
      : file_(load_any(path, Check::all)), executor_(file_.plan ? *file_.plan : make_plan(file_.captured)) {
    result_.file = path;
    set_start(&executor_, starting_values(file_, {}));
  }

  CostCheck run(const std::optional<Calibration>& calibration) {
    const Profile seen = measure();
    compare("estimate", {});
    if (calibration) compare("calibrated", {calibration, {}});
    compare("profile", {calibration, seen});
    return result_;
  }

 private:
  Profile measure() {
    constexpr int kWarmUp = 3, kSteps = 40;
    const Graph& g = executor_.plan().graph;
    ProfileBuilder even(g, clock_read_ns()), odd(g, clock_read_ns());
    Timeline timeline;
    for (int s = 0; s < kWarmUp + kSteps; ++s) {
      if (interrupted()) throw Cancelled("interrupted");
      executor_.run(&timeline);
      if (s >= kWarmUp) (s % 2 ? odd : even).add(timeline);
    }
    const Profile judge = odd.finish();
    result_.step_us = judge.run_us;
    for (const NodeTime& t : judge.nodes) times_[t.name] = t.us;
    return even.finish();
  }

  void compare(const char* source, const CostModel& model) {
    const Graph& g = executor_.plan().graph;
    const NodeCosts costs = cost_nodes(g, &model);
    const std::vector<double> built_in = cost_nodes(g, nullptr).us;
    CostError error{source, 0, 0, 0};
    std::vector<double> logs;
    double all = 0, all_measured = 0;
    for (NodeId n = 0; n < g.node_count(); ++n) {
      const auto i = static_cast<std::size_t>(n);
      const auto it = times_.find(profile_name(g, g.nodes[i]));
      if (it == times_.end() || it->second <= 0 || built_in[i] <= 0 || costs.us[i] <= 0) continue;
      logs.push_back(std::fabs(std::log(costs.us[i] / it->second)));
      all += costs.us[i], all_measured += it->second;
    }
    if (logs.empty()) return;
    result_.nodes = static_cast<std::int32_t>(logs.size());
    std::sort(logs.begin(), logs.end());
    error.median = median(logs);
    error.p90 = logs[std::min(logs.size() - 1, logs.size() * 9 / 10)];
    error.total_ratio = all / all_measured;
    result_.errors.push_back(error);
  }

  TapeFile file_;
  Executor executor_;
  std::map<std::string, double> times_;  // by node name, of the steps that judge
  CostCheck result_;
};

int check(const std::vector<std::string>& files, bool json) {
  std::string why;
  const std::optional<Calibration> calibration = load_calibration(calibration_path(), &why);
  if (!why.empty()) std::fprintf(stderr, "tapedeck: %s\n", why.c_str());
  std::vector<CostCheck> checks;
  for (const std::string& file : files) checks.push_back(Checked(file).run(calibration));
  if (json) {
    answer(cost_check_report(checks));
    return kOk;
  }
  std::string text = fmt::format("{:<32} {:>6} {:>10}  {:<12} {:>8} {:>8} {:>9}\n", "|ln(cost / measured)|", "nodes", "step us",
                                 "costs", "median", "p90", "sum");
  for (const CostCheck& c : checks)
    for (const CostError& e : c.errors)
      text += fmt::format("{:<32} {:>6} {:>10.1f}  {:<12} {:>8.3f} {:>8.3f} {:>9}\n", c.file, c.nodes, c.step_us, e.source,
                          e.median, e.p90, fmt::format("x{:.2f}", e.total_ratio));
  answer(text);
  return kOk;
}

int run_calibrate(const CalibrateCommandOptions& options) {
  if (!options.check.empty()) return check(options.check, options.json);
  const std::string path = options.output.empty() ? calibration_path() : options.output;
  return options.show ? show(path, options.json) : measure(path, options.quick, options.json);
}

[[maybe_unused]] const bool calibrate_registered = register_command(
    "calibrate", CommandGroup::replay, "Measure once how fast this machine runs every op; plans then use the measured costs.",
    calibrate_table, run_calibrate,
    "It also measures the peaks that `bench --roofline` compares with: flops, and the bytes that each cache and the memory "
    "move.\n"
    "Ctrl-C stops the measurement and changes nothing. A calibration of another machine or version is not used.");

}  // namespace

}  // namespace tapedeck::tool
