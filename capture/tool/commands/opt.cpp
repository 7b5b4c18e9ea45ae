// opt: runs passes by name on a graph and prints the result. The gain of every pass goes to stderr.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <cstdio>

namespace tapedeck::tool {

namespace {

struct OptOptions {
  std::string file;
  std::vector<std::string> passes;  // by name, in order; none: all that the pipeline simplifies with
  std::string output;
  int level = 2;
  bool fast_math = false;
  bool list = false;
  bool json = false;
};

std::vector<Option> opt_table(OptOptions& o) {
  Option file = file_argument(&o.file), level = level_option(&o.level);
  file.required = false;
  level.excludes = "--pass";
  return {
      file,
      {.name = "--pass",
       .metavar = "PASSES",
       .to = &o.passes,
       .help = "Run these passes in this order: cse,dce; --list prints their names.",
       .fallback = "all passes that simplify a graph before it is planned",
       .several = Several::commas,
       .words = pass_names},
      level,
      {.name = "--fast-math",
       .to = &o.fast_math,
       .help = "Allow rewrites that change rounding, or the results of NaN, infinities and -0."},
      {.name = "--list", .to = &o.list, .help = "Print the passes and leave."},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the graph here instead of to stdout: .graph, or .tape with the tensors of the file and without its plan.",
       .group = "Output"},
      json_option(&o.json),
  };
}

std::string list_text() {
  std::string text;
  for (const Pass* pass : all_passes()) {
    std::string names = pass->name;
    for (const char* alias : pass->aliases) names += std::string(", ") + alias;
    text +=
        fmt::format("{:<48} {}{}\n", names, pass->doc, pass->asked_for ? " (from code only: the pass needs a function)" : "");
  }
  return text;
}

// Prints the gain of one pass to stderr.
void say(const PassRecord& r) {
  if (r.skipped) return fmt::print(stderr, "{:<18} left out by TAPEDECK_DISABLE_PASSES\n", r.name);
  fmt::print(stderr, "{:<18} {} -> {} nodes, {} -> {} live, {:.2f} ms\n", r.name, r.nodes_before, r.nodes_after,
             human_size(r.bytes_before), human_size(r.bytes_after), r.ms);
}

int run_opt(const OptOptions& options) {
  if (options.list) {
    answer(options.json ? passes_report(all_passes()) : list_text());
    return kOk;
  }
  if (options.file.empty()) throw UsageError("FILE is missing; give a .tape or .graph file, or --list to see the passes");
  for (const std::string& name : options.passes)
    if (pass_named(name).asked_for)
      throw UsageError(
          fmt::format("the pass '{}' needs a function that only a program can give; run the pass from code", name));
  if (options.file.ends_with(".graph")) check_outputs({options.file}, {{"-o", options.output, true}});
  const StopAtInterrupt stop;
  TapeFile file = load_any(options.file, Check::all);
  PassOptions choices;
  choices.fast_math = options.fast_math;
  choices.level = static_cast<OptimizationLevel>(options.level);
  for (const std::string& name : options.passes) choices.level = std::max(choices.level, pass_named(name).level);
  PassRunner passes(choices);
  passes.cancel_by(&interrupted());
  if (options.passes.empty()) file.captured = simplify(std::move(file.captured), &passes);
  for (const std::string& name : options.passes) file.captured = passes.run(name.c_str(), std::move(file.captured));
  for (const PassRecord& record : passes.records()) say(record);

  const std::string text = tapedeck::print(file.captured);
  file.plan.reset();
  if (options.output.ends_with(".tape"))
    save_tape(options.output, file);
  else if (!options.output.empty())
    write_text(options.output, text);
  if (options.json)
    answer(opt_report(passes.records(), options.output.empty() ? text : ""), answers_beside(options.output));
  else if (options.output.empty())
    answer(text);
  return kOk;
}

[[maybe_unused]] const bool opt_registered =
    register_command("opt", CommandGroup::graphs, "Run passes on a graph and print the result.", opt_table, run_opt);

}  // namespace

}  // namespace tapedeck::tool
