#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/costs.h>
#include <tapedeck/capture/tool/report.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/planner.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tapedeck::tool {

namespace {

std::string summary(const std::string& path, const Plan& p) {
  std::string text = fmt::format("{}: strategy {}{}\n", path, p.strategy, p.feasible ? "" : " - the budget cannot be met");
  auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<16} {}\n", name, value); };
  line("peak", human_size(p.peak_bytes));
  line("  always held", human_size(p.external_bytes));
  line("  arena", human_size(p.arena_bytes));
  if (p.budget_bytes >= 0) line("budget", human_size(p.budget_bytes));
  line("lower bound", human_size(p.lower_bound_bytes));
  line("floor", human_size(p.floor_bytes));
  line("keep-all peak", human_size(p.keep_all_peak_bytes));
  line("nodes", fmt::format("{}, of which {} recomputed", p.nodes, p.recomputed_nodes));
  line("cost", fmt::format("{:.0f} us by the model, x{:.4f} of keep-all", p.cost_us, p.recompute_cost_ratio()));
  line("costs", describe_costs(p));
  line("segments", std::to_string(p.segments.size()));
  line("solved in", fmt::format("{:.1f} ms", p.solve_ms));
  return text;
}

std::string explanation(const Plan& p) {
  std::string text = "choices, in order:\n";
  for (const Decision& d : p.decisions)
    text += fmt::format("  {:<28} {:>12} bytes off {:>5} steps for {:>9.1f} us, {} clones -> live peak {}\n      {}\n", d.value, d.bytes, d.span, d.cost_us, d.clones,
                        d.live_peak_bytes, d.reason);
  if (p.decisions.empty()) text = "nothing is recomputed\n";
  text += "values in the arena, largest first:\n";
  std::vector<ValueId> order;
  for (ValueId v = 0; v < p.graph.value_count(); ++v)
    if (p.values[static_cast<std::size_t>(v)].where == Where::arena) order.push_back(v);
  std::stable_sort(order.begin(), order.end(), [&](ValueId a, ValueId b) {
    return p.graph.values[static_cast<std::size_t>(a)].type.bytes() > p.graph.values[static_cast<std::size_t>(b)].type.bytes();
  });
  for (ValueId v : order) {
    const Placement& at = p.values[static_cast<std::size_t>(v)];
    const std::string of = at.other != kNone ? " %" + p.graph.value_name(at.other) : at.reader != kNone ? fmt::format(", last read by node {}", at.reader) : "";
    text += fmt::format("  %{:<28} {:<18} at {:>10}  nodes {}..{}  {}{}\n", p.graph.value_name(v), to_string(p.graph.values[static_cast<std::size_t>(v)].type), at.offset,
                        at.birth, at.death, reason_name(at.reason), of);
  }
  return text;
}

}  // namespace

int plan(const PlanCommandOptions& options) {
  tapedeck::PlanOptions how;
  how.budget_percent = parse_percent(options.budget);
  if (how.budget_percent < 0 && !options.budget.empty()) how.budget = parse_size(options.budget);
  if (!parse_strategy(options.strategy, &how.strategy)) throw UsageError(fmt::format("unknown strategy '{}'", options.strategy));
  how.alignment = options.align;
  how.cancel = &interrupted();
  TapeFile file = load_any(options.file, Check::structure);
  how.costs = choose_costs(options.costs, file);
  Plan p;
  {
    Progress progress("planning");
    how.progress = [&](double fraction) { progress.at(fraction); };
    p = make_plan(file.captured, how);
  }
  std::string text = options.json ? plan_report(p) : summary(options.file, p);
  if (options.explain && !options.json) text += explanation(p);
  if (p.feasible && !options.output.empty()) {
    file.plan = p;
    save_tape(options.output, file);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!p.feasible) std::fprintf(stderr, "tapedeck: %s\n", p.infeasible_reason.c_str());
  return p.feasible ? kOk : kInfeasible;
}

}  // namespace tapedeck::tool
