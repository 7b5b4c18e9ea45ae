#include <tapedeck/viewer/model/measured_csv.h>

#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace tapedeck::viewer {

namespace {

// "planned,measured,deviation"; the last two are empty without a measurement.
std::string compared(double planned, std::optional<double> measured) {
  if (!measured || std::isnan(*measured)) return fmt::format("{},,", planned);
  return fmt::format("{},{},{:.4f}", planned, *measured, 100 * deviation(*measured, planned));
}

std::string compared(std::int64_t planned, std::optional<std::int64_t> measured) {
  if (!measured) return fmt::format("{},,", planned);
  return fmt::format("{},{},{:.4f}", planned, *measured,
                     100 * deviation(static_cast<double>(*measured), static_cast<double>(planned)));
}

std::string node_line(const PlanModel& model, NodeId n, std::optional<std::int64_t> live, std::optional<double> us) {
  const auto i = static_cast<std::size_t>(n);
  const Node& node = model.graph().nodes[i];
  const std::string value = node.n_outputs > 0 ? model.name_of(node.first_output) : "";
  return fmt::format("node,{},{},{},{},{}\n", n, csv_field(node.op->name), csv_field(value), compared(model.curve()[i], live),
                     compared(model.values().node_us(n), us));
}

}  // namespace

std::string live_bytes_csv(const PlanModel& model, const MeasuredRun* run, const std::vector<double>& node_us) {
  const Plan& plan = model.plan();
  std::optional<std::int64_t> peak, most;
  std::optional<double> step;
  if (run != nullptr) {
    peak = run->observed_peak_bytes;
    most = run->most_live;
    step = run->step.median_us;
  }
  std::string text =
      "what,node,op,value,planned_bytes,measured_bytes,bytes_deviation_percent,planned_us,measured_us,us_deviation_percent\n";
  text += "peak,,,," + compared(plan.peak_bytes, peak) + "," + compared(plan.cost_us, step) + "\n";
  text += "most live,,,," + compared(plan.lower_bound_bytes, most) + ",,,\n";
  for (NodeId n = 0; n < model.nodes(); ++n) {
    const auto i = static_cast<std::size_t>(n);
    std::optional<std::int64_t> live;
    if (run != nullptr && run->live[i] >= 0) live = run->live[i];
    text += node_line(model, n, live, node_us.empty() ? std::nullopt : std::optional(node_us[i]));
  }
  return text;
}

}  // namespace tapedeck::viewer
