// record, info, print, verify and view.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/outputs.h>
#include <tapedeck/capture/tool/picture.h>
#include <tapedeck/capture/tool/report.h>
#include <tapedeck/capture/tool/start.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/passes/registry.h>
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
void answer(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

int record(const RecordOptions& request) {
  check_outputs({}, {{"-o", request.output}});
  Captured captured;
  const TapeFile file = record_tape(request.model, request.options, &captured);
  save_tape(request.output, file);
  if (request.json)
    answer(record_report(request.output, captured));
  else
    answer(fmt::format("wrote {}: {} nodes\n{}", request.output, captured.graph.node_count(), captured.report.to_string()));
  return kOk;
}

int info(const FileOptions& options) {
  const TapeFile file = load_any(options.file, Check::structure);
  if (options.json) {
    answer(info_report(options.file, file));
    return kOk;
  }
  const Graph& g = file.captured;
  std::string text =
      fmt::format("{}: graph {}, {} nodes, {} values\n", options.file, g.name.view(), g.node_count(), g.value_count());
  for (const auto& [key, value] : file.metadata) text += fmt::format("  {}: {}\n", key, value);
  auto list = [&](const char* title, ValueId first, ValueId last, const auto& stored) {
    if (first == last) return;
    std::int64_t bytes = 0;
    for (ValueId v = first; v < last; ++v) bytes += g.values[v].type.bytes();
    text += fmt::format("{}: {}\n", title, human_size(bytes));
    for (ValueId v = first; v < last; ++v) {
      const Value& value = g.values[v];
      text += fmt::format("  {:<32} {:<20} {}{}\n", g.value_name(v), to_string(value.type), role_name(value.role),
                          stored.count(g.value_name(v)) ? "" : ", type only");
    }
  };
  list("inputs", 0, g.n_inputs, file.inputs);
  list("state", g.n_inputs, g.n_inputs + g.n_state, file.state);
  if (file.plan) {
    const Plan& p = *file.plan;
    text += fmt::format("plan: {}, peak {}, {} nodes of which {} recomputed, cost x{:.3f}, {} segments\n", p.strategy,
                        human_size(p.peak_bytes), p.nodes, p.recomputed_nodes, p.recompute_cost_ratio(), p.segments.size());
  } else {
    text += "plan: none\n";
  }
  if (file.profile)
    text += fmt::format("profile: {} nodes, {} steps of {:.1f} us on {}\n", file.profile->nodes.size(), file.profile->steps,
                        file.profile->run_us, file.profile->machine);
  answer(text);
  return kOk;
}

namespace {

// "seg=0, at=2560, fuse=1" of a planned node: its segment, where its first result lies in the arena, and which pointwise nodes
// could be one kernel with it.
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
  passes.watch([&](const std::string& step, const Graph& graph) {
    if (step == wanted) found = graph;
  });
  prepare(captured, &passes);
  if (found) return *found;
  pass_named(name);  // says so if there is no such pass
  std::string steps;
  for (const PassRecord& record : passes.records()) steps += (steps.empty() ? "" : ", ") + record.name;
  throw UsageError(fmt::format("the pipeline does not run '{}' by itself; it runs: {}", name, steps));
}

}  // namespace

int print(const PrintOptions& options) {
  const TapeFile file = load_any(options.file, Check::structure);
  tapedeck::PrintOptions how;
  how.notes = !options.no_notes;
  std::string text;
  if (!options.after.empty()) {
    if (options.planned) throw UsageError("--planned is after all passes: give it or --after");
    text = tapedeck::print(graph_after(file.captured, options.after), how);
  } else if (options.planned) {
    const Plan plan = file.plan ? *file.plan : make_plan(file.captured);
    const FusionGroups groups = find_fusion_groups(plan.graph);
    if (how.notes) how.extra_notes = [&](NodeId n) { return plan_notes(plan, groups, n); };
    text = tapedeck::print(plan.graph, how);
  } else {
    text = tapedeck::print(file.captured, how);
  }
  answer(options.json ? print_report(text) : text);
  return kOk;
}

int verify(const FileOptions& options) {
  const TapeFile file = load_any(options.file, Check::all);  // throws on whatever is wrong with the bytes or the graph
  std::vector<std::string> problems;
  tapedeck::verify(file.captured);
  if (file.plan) {
    problems = check_plan(*file.plan);
    for (std::string& p : check_clones(*file.plan)) problems.push_back(std::move(p));
  }
  if (options.json)
    answer(verify_report(options.file, problems));
  else if (problems.empty())
    answer(fmt::format("{}: ok, {} nodes, {}\n", options.file, file.captured.node_count(),
                       file.plan ? "plan checked" : "no plan"));
  else
    for (const std::string& p : problems) answer(p + "\n");
  return problems.empty() ? kOk : kBadFile;
}

int view(const std::string& file) {
  const std::string viewer = viewer_program();
  pass_interrupts_on();
  execl(viewer.c_str(), viewer.c_str(), file.c_str(), static_cast<char*>(nullptr));
  throw ExecutionError(fmt::format("{}: {}", viewer, std::strerror(errno)));
}

}  // namespace tapedeck::tool
