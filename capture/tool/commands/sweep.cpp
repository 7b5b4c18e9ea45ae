// sweep: the cost of each strategy over the budget, from the floor to the peak with everything kept, as a table, CSV, a picture
// or JSON. Ctrl-C keeps the points that were found.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/tradeoff_svg.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/tradeoff.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::tool {

namespace {

struct SweepOptions {
  std::string file;
  int points = 16;
  std::vector<std::string> strategies;  // empty, or with "all": every one
  std::int64_t align = -1;              // -1: the alignment of the device
  std::string costs;                    // estimate, calibrated, profile; empty: the best source there is
  std::string csv, svg;
  bool json = false;
};

std::vector<std::string> strategies_or_all() {
  std::vector<std::string> names = strategy_names();
  names.insert(names.begin(), "all");
  return names;
}

std::vector<Option> sweep_table(SweepOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--points",
       .metavar = "N",
       .to = &o.points,
       .help = "The number of budgets; the floor and the peak with everything kept are two of them.",
       .least = 2,
       .most = 1000},
      {.name = "--strategies",
       .metavar = "NAME,...",
       .to = &o.strategies,
       .help = "The strategies that plan for each budget; the list is below.",
       .fallback = "all",
       .several = Several::commas,
       .words = strategies_or_all},
      align_option(&o.align),
      costs_option(&o.costs),
      {.name = "--csv",
       .metavar = "FILE",
       .to = &o.csv,
       .help = "Write a line for each strategy and budget here, - for stdout.",
       .group = "Output"},
      {.name = "--svg", .metavar = "FILE", .to = &o.svg, .help = "Draw the curves here.", .group = "Output"},
      json_option(&o.json),
  };
}

std::vector<Strategy> strategies_of(const SweepOptions& options) {
  std::vector<Strategy> strategies;
  for (const std::string& name : options.strategies) {
    if (name == "all") return every_strategy();
    const Strategy strategy = strategy_named(name);
    if (std::find(strategies.begin(), strategies.end(), strategy) == strategies.end()) strategies.push_back(strategy);
  }
  return strategies.empty() ? every_strategy() : strategies;
}

std::string ratio_text(bool is_known, double ratio) { return is_known ? fmt::format("{:.4f}", ratio) : "-"; }

// The point of a curve at the budget that is row `row` of the first curve; null if it was not found.
const TradeoffPoint* point_at(const TradeoffCurve& curve, std::size_t row) {
  return row < curve.points.size() ? &curve.points[row] : nullptr;
}

std::string table_text(const Tradeoff& found) {
  constexpr int kLeastColumn = 8;
  const auto width = [&](const std::string& name) { return std::max<int>(kLeastColumn, static_cast<int>(name.size())); };
  std::string text = fmt::format("  {:>16} {:>8} {:>8}", "budget in bytes", "of peak", "bound");
  for (const TradeoffCurve& c : found.curves) text += fmt::format(" {:>{}}", c.name, width(c.name));
  text += "\n";
  for (std::size_t row = 0; row < found.curves.front().points.size(); ++row) {
    const TradeoffPoint& first = found.curves.front().points[row];
    text += fmt::format("  {:>16} {:>6.1f} % {:>8}", first.budget_bytes,
                        100.0 * static_cast<double>(first.budget_bytes) /
                            static_cast<double>(std::max<std::int64_t>(found.keep_all_peak_bytes, 1)),
                        ratio_text(first.cost_lower_bound_us > 0, first.cost_lower_bound_us / found.keep_all_cost_us));
    for (const TradeoffCurve& c : found.curves) {
      const TradeoffPoint* p = point_at(c, row);
      text += fmt::format(" {:>{}}", ratio_text(p && p->feasible, p ? p->cost_ratio : 0), width(c.name));
    }
    text += "\n";
  }
  return text;
}

std::string summary(const std::string& path, const Tradeoff& found) {
  std::string text = fmt::format("{}: cost as a multiple of keeping everything; -: no plan was found that fits\n", path);
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<16} {}\n", name, value); };
  line("floor", human_size(found.floor_bytes));
  line("keep-all peak", human_size(found.keep_all_peak_bytes));
  line("keep-all cost", fmt::format("{:.0f} us by the model, costs: {}", found.keep_all_cost_us, found.costs));
  text += table_text(found);
  if (found.floor_bytes >= found.keep_all_peak_bytes)
    text += "No strategy lowers the peak of keeping everything, so there is one budget.\n";
  return text;
}

std::string name_of(const std::string& path, const Graph& graph) { return graph.name.str().empty() ? path : graph.name.str(); }

Tradeoff found_for(const SweepOptions& options, const TapeFile& file) {
  TradeoffOptions how;
  how.points = options.points;
  how.strategies = strategies_of(options);
  how.plan.alignment = options.align;
  how.plan.costs = choose_costs(options.costs, file);
  how.plan.cancel = &interrupted();
  Progress progress("sweeping");
  how.plan.progress = [&](double fraction) { progress.at(fraction); };
  return tradeoff(file.captured, how);
}

TapeFile load(const std::string& path) {
  const StopAtInterrupt stop;  // there are no points yet
  return load_any(path, Check::structure);
}

// Says on stderr what an interrupted sweep has kept.
void tell_of_interruption(const SweepOptions& options, const Tradeoff& found) {
  std::size_t points = 0;
  for (const TradeoffCurve& c : found.curves) points += c.points.size();
  const bool writes = !options.csv.empty() || !options.svg.empty();
  note(fmt::format("interrupted; the {} point{} found until then {} kept{}", points, points == 1 ? "" : "s",
                   points == 1 ? "is" : "are", writes ? " in the files" : ""));
}

int run_sweep(const SweepOptions& options) {
  check_outputs({options.file}, {{"--csv", options.csv, true}, {"--svg", options.svg}});
  strategies_of(options);  // an unknown name is an error before the file is read
  const TapeFile file = load(options.file);
  const Tradeoff found = found_for(options, file);
  if (found.curves.empty()) throw Cancelled("interrupted");
  if (!options.svg.empty()) write_text(options.svg, tradeoff_svg(found, name_of(options.file, file.captured)));
  if (!options.csv.empty()) write_text(options.csv, tradeoff_csv(found));
  answer(options.json ? sweep_report(found) : summary(options.file, found), answers_beside(options.csv));
  finish_answer();
  if (!found.complete) tell_of_interruption(options, found);
  return found.complete ? kOk : kInterrupted;
}

[[maybe_unused]] const bool sweep_registered = register_command(
    "sweep", CommandGroup::plan, "Plan a step with each strategy for many budgets: what memory costs in time.", sweep_table,
    run_sweep,
    "Ctrl-C keeps the points that were found, also in the files of --csv and --svg.\n\nStrategies:\n" + list_strategies());

}  // namespace

}  // namespace tapedeck::tool
