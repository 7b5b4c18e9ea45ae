// Compares the profile of a replay with the costs that the plan assumed, node by node, and prints the dearest nodes.
#include <tapedeck/capture/tool/reports/profile_table.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/cost/machine.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tapedeck::tool {

namespace {

constexpr int kWarmUp = 3;
constexpr std::size_t kShown = 20;

}  // namespace

NodeTimer::NodeTimer(const Plan& plan, int steps)
    : builder_(plan.graph, clock_read_ns()), warm_up_(std::min(kWarmUp, steps - 1)) {}

void NodeTimer::step_done() {
  if (warm_up_-- <= 0) builder_.add(step_);
}

Profile NodeTimer::finish(std::int64_t observed_peak_bytes) const {
  Profile profile = builder_.finish();
  profile.peak_bytes = observed_peak_bytes;
  return profile;
}

ProfileTable profile_table(const Plan& plan, const Profile& profile, const Calibration* calibration) {
  ProfileTable table;
  table.profile = profile;
  table.estimates = calibration ? "calibrated" : "estimate";
  CostModel model;
  if (calibration) model.calibration = *calibration;
  const std::vector<double> estimates = cost_nodes(plan.graph, &model).us;
  std::map<std::string, std::pair<double, std::int32_t>> expected;  // by name: of one run, and how many
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    auto& [us, runs] = expected[profile_name(plan.graph, plan.graph.nodes[n])];
    us = estimates[n];
    ++runs;
  }
  for (const NodeTime& t : profile.nodes) {
    const auto [estimate, runs] = expected[t.name];
    table.rows.push_back({t.name, t.op, t.us, runs, 0, estimate, estimate > 0 ? t.us / estimate : 0});
    table.kernels_us += t.us * runs;
    table.estimate_us += estimate * runs;
  }
  for (ProfileRow& row : table.rows) row.share = table.kernels_us > 0 ? row.us * row.runs / table.kernels_us : 0;
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.us * a.runs > b.us * b.runs; });
  return table;
}

std::string profile_text(const ProfileTable& table) {
  std::string text = fmt::format("  {:<28} {:<24} {:>11} {:>5} {:>7} {:>11} {:>7}\n", "node", "op", "us", "runs", "share",
                                 table.estimates, "ratio");
  const auto ratio = [](double r) { return r > 0 ? fmt::format("x{:.2f}", r) : std::string("-"); };
  for (std::size_t i = 0; i < std::min(kShown, table.rows.size()); ++i) {
    const ProfileRow& r = table.rows[i];
    text += fmt::format("  {:<28} {:<24} {:>11.2f} {:>5} {:>6.1f}% {:>11.2f} {:>7}\n", "%" + r.name, r.op, r.us, r.runs,
                        100 * r.share, r.estimate_us, ratio(r.ratio));
  }
  if (table.rows.size() > kShown) text += fmt::format("  and {} more\n", table.rows.size() - kShown);
  text += fmt::format(
      "  all {} nodes: {:.1f} us in kernels, {:.1f} by the {}{}; a step, clock included, {:.1f} us (median of {})\n",
      table.rows.size(), table.kernels_us, table.estimate_us, table.estimates, table.estimates == "calibrated" ? " rates" : "",
      table.profile.run_us, table.profile.steps);
  text += table.saved.empty() ? "  the profile was written nowhere; --save FILE keeps it\n"
                              : fmt::format("  the profile is in {}\n", table.saved);
  return text;
}

}  // namespace tapedeck::tool
