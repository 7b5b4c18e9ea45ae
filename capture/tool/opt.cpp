// opt: passes by name on a graph.
#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/outputs.h>
#include <tapedeck/capture/tool/report.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <cstdio>

namespace tapedeck::tool {

namespace {

void answer(const std::string& text, std::FILE* file = stdout) { std::fwrite(text.data(), 1, text.size(), file); }

std::string list_text() {
  std::string text;
  for (const Pass* pass : all_passes()) {
    std::string names = pass->name;
    for (const char* alias : pass->aliases) names += std::string(", ") + alias;
    text += fmt::format("{:<48} {}{}\n", names, pass->doc, pass->asked_for ? " (only from code: it needs a function)" : "");
  }
  return text;
}

// What every pass won, on stderr.
void say(const PassRecord& r) {
  if (r.skipped) return fmt::print(stderr, "{:<18} left out by TAPEDECK_DISABLE_PASSES\n", r.name);
  fmt::print(stderr, "{:<18} {} -> {} nodes, {} -> {} live, {:.2f} ms\n", r.name, r.nodes_before, r.nodes_after,
             human_size(r.bytes_before), human_size(r.bytes_after), r.ms);
}

}  // namespace

int opt(const OptOptions& options) {
  if (options.list) {
    answer(options.json ? passes_report(all_passes()) : list_text());
    return kOk;
  }
  if (options.file.empty()) throw UsageError("give a FILE, or --list");
  for (const std::string& name : options.passes)
    if (pass_named(name).asked_for)
      throw UsageError(fmt::format("pass '{}' needs a function of yours: run it from code", name));
  if (options.file.ends_with(".graph")) check_outputs({options.file}, {{"-o", options.output, true}});
  TapeFile file = load_any(options.file, Check::all);
  PassOptions choices;
  choices.fast_math = options.fast_math;
  PassRunner passes(choices);
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

}  // namespace tapedeck::tool
