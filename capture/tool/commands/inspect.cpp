// info, print, verify and view: four commands that read a file and change nothing.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/picture.h>
#include <tapedeck/capture/tool/files/resize.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/graph_summary.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/tape_file.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/plan/level_names.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

namespace tapedeck::tool {

namespace {

struct FileOptions {
  std::string file;
  bool json = false;
};

std::vector<Option> file_table(FileOptions& o) { return {file_argument(&o.file), json_option(&o.json)}; }

struct PrintCommandOptions {
  std::string file;
  std::string after;  // the graph as the pipeline has it after this pass
  bool planned = false;
  bool no_notes = false;
  bool json = false;
};

std::vector<Option> print_table(PrintCommandOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--after",
       .metavar = "PASS",
       .to = &o.after,
       .help = "Print the graph as the planner has it after this pass; if the pass runs several times, after the last one.",
       .words = pass_names},
      {.name = "--planned", .to = &o.planned, .help = "Print the planned graph, with segments and offsets."},
      {.name = "--no-notes", .to = &o.no_notes, .help = "Leave the [notes] out."},
      json_option(&o.json),
  };
}

struct ViewOptions {
  std::string file, budget, panel, shot, csv, run, theme, size;
  std::string costs;
};

// The words go to the viewer, which checks them.
std::vector<Option> view_table(ViewOptions& o) {
  return {file_argument(&o.file),
          {.name = "--budget",
           .metavar = "SIZE",
           .to = &o.budget,
           .help = "Plan under this budget: 64MiB, 1.5GB, 50%.",
           .group = "Plan"},
          {.name = "--costs",
           .metavar = "SOURCE",
           .to = &o.costs,
           .help = "The source of microseconds.",
           .group = "Plan",
           .fallback = "the best source there is",
           .choices = {"estimate", "calibrated", "profile"}},
          {.name = "--shot",
           .metavar = "FILE",
           .to = &o.shot,
           .help = "Open no window, and write a picture here; this needs no display.",
           .group = "Pictures"},
          {.name = "--export",
           .metavar = "FILE.csv",
           .to = &o.csv,
           .help = "Open no window, and write the numbers of --panel here.",
           .group = "Pictures"},
          {.name = "--panel",
           .metavar = "NAME",
           .to = &o.panel,
           .help = "Of which panel; `tapedeck-viewer --help` lists them. Without it, of the window.",
           .group = "Pictures"},
          {.name = "--run",
           .metavar = "ID,ID,...",
           .to = &o.run,
           .help = "Run these commands when the plan is there; `tapedeck-viewer --commands` lists them.",
           .group = "Pictures"},
          {.name = "--theme",
           .metavar = "NAME",
           .to = &o.theme,
           .help = "The colours.",
           .group = "Pictures",
           .choices = {"dark", "light", "high-contrast"}},
          {.name = "--size",
           .metavar = "WxH",
           .to = &o.size,
           .help = "Of the window or the picture.",
           .group = "Pictures",
           .fallback = "1600x900"}};
}

// A line for each figure, and a table of the ops.
std::string graph_text(const GraphSummary& s) {
  std::string text = fmt::format("parameters: {} in {}, {}\n", grouped(s.parameters), plural(s.parameter_tensors, "tensor"),
                                 human_size(s.parameter_bytes));
  std::string phases, flops;
  for (const PhaseCount& phase : s.phases) {
    phases += fmt::format("{}{} {}", phases.empty() ? "" : ", ", phase_name(phase.phase), plural(phase.nodes, "node"));
    flops += fmt::format("{}{} {}", flops.empty() ? "" : ", ", phase_name(phase.phase), flops_text(phase.flops));
  }
  text += fmt::format("phases: {}\n", phases.empty() ? "none" : phases);
  text += fmt::format("flops: {} a step{}{}\n", flops_text(s.flops), flops.empty() ? "" : ": " + flops,
                      s.flops_per_pass > 0 ? fmt::format("; and {} in each pass of the loops that run until a condition fails",
                                                         flops_text(s.flops_per_pass))
                                           : "");
  text += fmt::format("ops: {} kinds\n", s.ops.size());
  for (const OpCount& op : s.ops)
    text += fmt::format("  {:<32} {:>6}  {:>14}{}\n", op.name, op.nodes, op.flops > 0 ? flops_text(op.flops) : "-",
                        op.version > 1 ? fmt::format("  version {}", op.version) : "");
  return text;
}

std::string values_text(const Graph& g, const char* title, ValueId first, ValueId last,
                        const std::map<std::string, Tensor>& stored) {
  if (first == last) return "";
  std::int64_t bytes = 0;
  for (ValueId v = first; v < last; ++v) bytes += g.values[v].type.bytes();
  std::string text = fmt::format("{}: {}\n", title, human_size(bytes));
  for (ValueId v = first; v < last; ++v) {
    const Value& value = g.values[v];
    text += fmt::format("  {:<32} {:<20} {}{}\n", g.value_name(v), to_string(value.type), role_name(value.role),
                        stored.count(g.value_name(v)) ? "" : ", type only");
  }
  return text;
}

std::string info_text(const std::string& path, const TapeFile& file, const DimTable& dims, const GraphSummary& summary) {
  const Graph& g = file.captured;
  std::string text = fmt::format("{}: graph {}, {}, {}\n", path, g.name.view(), plural(g.node_count(), "node"),
                                 plural(g.value_count(), "value"));
  for (const auto& [key, value] : file.metadata) text += fmt::format("  {}: {}\n", key, value);
  text += fmt::format("versions: tapedeck {}, tape format {}\n", TAPEDECK_VERSION, tape_file::kFormat);
  text += graph_text(summary);
  text += fmt::format("dims: {}\n", dims.empty() ? "none" : dims_text(dims));
  text += values_text(g, "inputs", 0, g.n_inputs, file.inputs);
  text += values_text(g, "state", g.n_inputs, g.n_inputs + g.n_state, file.state);
  if (file.plan) {
    const Plan& p = *file.plan;
    text += fmt::format("plan: {}, peak {}, {} of which {} recomputed, cost x{:.3f}, {}, passes {}\n", p.strategy,
                        human_size(p.peak_bytes), plural(p.nodes, "node"), p.recomputed_nodes, p.recompute_cost_ratio(),
                        plural(std::ssize(p.segments), "segment"), level_name(p.level));
  } else {
    text += "plan: none\n";
  }
  if (file.profile)
    text += fmt::format("profile: {}, {} of {:.1f} us on {}\n", plural(std::ssize(file.profile->nodes), "node"),
                        plural(file.profile->steps, "step"), file.profile->run_us, file.profile->machine);
  return text;
}

int run_info(const FileOptions& options) {
  const StopAtInterrupt stop;
  DimTable dims;
  const TapeFile file = load_with_dims(options.file, Check::structure, &dims);
  const GraphSummary summary = summarize(file.captured);
  answer(options.json ? info_report(options.file, file, dims, summary) : info_text(options.file, file, dims, summary));
  return kOk;
}

// "seg=0, at=2560, fuse=1" of a planned node: its segment, the offset of its first result in the arena, and the group
// of pointwise nodes that could be one kernel with it.
std::string plan_notes(const Plan& p, const FusionGroups& groups, NodeId n) {
  std::string notes;
  for (std::size_t s = 0; s < p.segments.size(); ++s)
    if (std::binary_search(p.segments[s].nodes.begin(), p.segments[s].nodes.end(), n)) notes = fmt::format("seg={}", s);
  const Node& node = p.graph.nodes[n];
  if (node.n_outputs > 0) {
    const Placement& at = p.values[node.first_output];
    if (at.where == Where::arena) notes += fmt::format("{}at={}", notes.empty() ? "" : ", ", at.offset);
  }
  if (const std::int32_t group = groups.of_node[n]; group != kNone)
    notes += fmt::format("{}fuse={}", notes.empty() ? "" : ", ", group);
  return notes;
}

// The graph as the pipeline has it after pass `name`.
Graph graph_after(const Graph& captured, const std::string& name) {
  const Pass* pass = find_pass(name);
  const std::string wanted = pass ? pass->name : name;
  std::optional<Graph> found;
  PassRunner passes;
  passes.cancel_by(&interrupted());
  passes.watch([&](const std::string& step, const Graph& graph) {
    if (step == wanted) found = graph;
  });
  prepare(captured, &passes);
  if (found) return *found;
  pass_named(name);  // throws if there is no such pass
  std::string steps;
  for (const PassRecord& record : passes.records()) steps += (steps.empty() ? "" : ", ") + record.name;
  throw UsageError(fmt::format("the pipeline does not run '{}' by itself; it runs: {}", name, steps));
}

int run_print(const PrintCommandOptions& options) {
  const StopAtInterrupt stop;
  const TapeFile file = load_any(options.file, Check::structure);
  tapedeck::PrintOptions how;
  how.notes = !options.no_notes;
  std::string text;
  if (!options.after.empty()) {
    if (options.planned)
      throw UsageError("--planned and --after exclude each other: a planned graph has gone through all passes");
    text = tapedeck::print(graph_after(file.captured, options.after), how);
  } else if (options.planned) {
    tapedeck::PlanOptions planning;
    planning.cancel = &interrupted();
    const Plan plan = file.plan ? *file.plan : make_plan(file.captured, planning);
    const FusionGroups groups = find_fusion_groups(plan.graph);
    if (how.notes) how.extra_notes = [&](NodeId n) { return plan_notes(plan, groups, n); };
    text = tapedeck::print(plan.graph, how);
  } else {
    text = tapedeck::print(file.captured, how);
  }
  answer(options.json ? print_report(text) : text);
  return kOk;
}

int run_verify(const FileOptions& options) {
  const StopAtInterrupt stop;
  const TapeFile file = load_any(options.file, Check::all);  // throws if the bytes or the graph are wrong
  std::vector<std::string> problems;
  tapedeck::verify(file.captured);
  if (file.plan) {
    problems = check_plan(*file.plan);
    for (std::string& p : check_clones(*file.plan)) problems.push_back(std::move(p));
  }
  if (options.json)
    answer(verify_report(options.file, problems));
  else if (problems.empty())
    answer(fmt::format("{}: ok, {}, {}\n", options.file, plural(file.captured.node_count(), "node"),
                       file.plan ? "plan checked" : "no plan"));
  else
    for (const std::string& p : problems) answer(p + "\n");
  return problems.empty() ? kOk : kBadFile;
}

int run_view(const ViewOptions& options) {
  const std::string viewer = viewer_program();
  pass_signals_on();
  std::vector<std::string> words = {viewer, options.file};
  const std::pair<const char*, const std::string*> given[] = {
      {"--budget", &options.budget}, {"--costs", &options.costs}, {"--shot", &options.shot},   {"--export", &options.csv},
      {"--panel", &options.panel},   {"--run", &options.run},     {"--theme", &options.theme}, {"--size", &options.size}};
  for (const auto& [name, value] : given)
    if (!value->empty()) words.insert(words.end(), {name, *value});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(viewer.c_str(), arguments.data());
  throw ExecutionError(fmt::format("{}: {}", viewer, std::strerror(errno)));
}

[[maybe_unused]] const bool info_registered = register_command(
    "info", CommandGroup::record, "Print the contents of a file: parameters, FLOPs, phases, ops, inputs, state, plan, profile.",
    file_table, run_info);
[[maybe_unused]] const bool print_registered =
    register_command("print", CommandGroup::record, "Print a graph as text.", print_table, run_print);
[[maybe_unused]] const bool verify_registered = register_command(
    "verify", CommandGroup::record, "Check a file, its graph and its plan without running them.", file_table, run_verify);
[[maybe_unused]] const bool view_registered =
    register_command("view", CommandGroup::record, "Open a file in the desktop viewer.", view_table, run_view);

}  // namespace

}  // namespace tapedeck::tool
