#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/costs.h>
#include <tapedeck/capture/tool/outputs.h>
#include <tapedeck/capture/tool/picture.h>
#include <tapedeck/capture/tool/plan_explain.h>
#include <tapedeck/capture/tool/report.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/plan_csv.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <fmt/format.h>

#include <cstdio>

namespace tapedeck::tool {

namespace {

std::string chunks_text(const Plan& p) {
  const std::string text = fmt::format("{}, of no more than {}", p.chunks.size(), human_size(p.chunk_bytes));
  const bool has_larger = !p.chunks.empty() && p.chunks.front() > p.chunk_bytes;
  return has_larger ? text + ", but for what is larger by itself: " + human_size(p.chunks.front()) : text;
}

std::string summary(const std::string& path, const Plan& p) {
  std::string text = fmt::format("{}: strategy {}{}\n", path, p.strategy, p.feasible ? "" : " - the budget cannot be met");
  auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<16} {}\n", name, value); };
  line("peak", human_size(p.peak_bytes));
  line("  always held", human_size(p.external_bytes));
  line("  arena", human_size(p.arena_bytes));
  if (p.chunk_bytes > 0) line("  chunks", chunks_text(p));
  if (p.budget_bytes >= 0) line("budget", human_size(p.budget_bytes));
  line("lower bound", human_size(p.lower_bound_bytes));
  line("floor", human_size(p.floor_bytes));
  line("keep-all peak", human_size(p.keep_all_peak_bytes));
  line("order", p.order);
  line("nodes", fmt::format("{}, of which {} recomputed", p.nodes, p.recomputed_nodes));
  line("cost", fmt::format("{:.0f} us by the model, x{:.4f} of keep-all", p.cost_us, p.recompute_cost_ratio()));
  line("costs", describe_costs(p));
  line("segments", std::to_string(p.segments.size()));
  line("solved in", fmt::format("{:.1f} ms", p.solve_ms));
  return text;
}

std::vector<SharingBound> bounds_of(const Graph& captured, tapedeck::PlanOptions how, const Plan& shown) {
  Progress progress("planning with rules on and off");
  how.progress = {};
  return sharing_bounds(captured, how, &shown);
}

// A tape may take its plan in; a text graph would be gone.
void check_files(const PlanCommandOptions& options) {
  const std::vector<OutputFile> beside = {{"--csv", options.csv, true}, {"--picture", options.picture}};
  std::vector<OutputFile> all = beside;
  all.push_back({"-o", options.output});
  check_outputs({}, all);
  check_outputs({options.file}, options.file.ends_with(".graph") ? all : beside);
  if (!options.picture.empty()) check_picture(options.picture);
}

}  // namespace

int plan(const PlanCommandOptions& options) {
  check_files(options);
  tapedeck::PlanOptions how;
  how.budget_percent = parse_percent(options.budget);
  if (how.budget_percent < 0 && !options.budget.empty()) how.budget = parse_size(options.budget);
  how.strategy = strategy_named(options.strategy);
  how.ordering = options.order == "recorded" ? Ordering::recorded : Ordering::automatic;
  how.alignment = options.align;
  how.device = options.device == "cuda" ? DeviceType::cuda : DeviceType::cpu;
  how.chunk_bytes = parse_chunk(options.chunk);
  how.threads = options.threads;
  how.parallel_peak = options.parallel_peak;
  how.segment_us = options.segment_us;
  how.split_phases = options.split_phases;
  how.cancel = &interrupted();
  TapeFile file = load_any(options.file, Check::structure);
  how.costs = choose_costs(options.costs, file);
  Plan p;
  {
    Progress progress("planning");
    how.progress = [&](double fraction) { progress.at(fraction); };
    p = make_plan(file.captured, how);
  }
  PlanBackground background;
  if (options.explain == "peak") background.node_us = cost_nodes(p.graph, how.costs.get()).us;
  if (options.explain == "memory") background.sharing = bounds_of(file.captured, how, p);
  std::string text = options.json ? plan_report(p, options.explain, background)
                                  : summary(options.file, p) + explained(options.explain, p, background);
  std::FILE* answers = answers_beside(options.csv);
  std::fwrite(text.data(), 1, text.size(), answers);
  std::fflush(answers);
  if (!p.feasible) std::fprintf(stderr, "tapedeck: %s\n", p.infeasible_reason.c_str());
  if (!options.csv.empty()) write_text(options.csv, plan_csv(p));
  if (!options.picture.empty()) write_picture(options.picture, file.captured, p);
  if (p.feasible && !options.output.empty()) {
    file.plan = p;
    save_tape(options.output, file);
  }
  return p.feasible ? kOk : kInfeasible;
}

}  // namespace tapedeck::tool
