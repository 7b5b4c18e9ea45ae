// export: a graph for other programs, as DOT of Graphviz or as one JSON object a line.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/explain/export_graph.h>
#include <tapedeck/capture/planner/planner.h>

namespace tapedeck::tool {

namespace {

struct ExportOptions {
  std::string format;  // dot | jsonl
  std::string file;
  bool planned = false;
  std::string output;
  bool json = false;
};

std::vector<Option> table(ExportOptions& o) {
  return {
      {.name = "FORMAT",
       .to = &o.format,
       .help = "dot: a picture for Graphviz. jsonl: a JSON object a line, for scripts.",
       .required = true,
       .choices = {"dot", "jsonl"}},
      file_argument(&o.file),
      {.name = "--planned",
       .to = &o.planned,
       .help = "The planned graph, with what is recomputed, instead of the captured one. A file without a plan is planned."},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the text here instead of to stdout.",
       .group = "Output"},
      json_option(&o.json),
  };
}

Graph planned_graph(const TapeFile& file) {
  if (file.plan) return file.plan->graph;
  tapedeck::PlanOptions how;
  how.cancel = &interrupted();
  Progress progress("planning");
  how.progress = [&](double fraction) { progress.at(fraction); };
  return make_plan(file.captured, how).graph;
}

int run(const ExportOptions& options) {
  const StopAtInterrupt stop;
  check_outputs({options.file}, {{"-o", options.output, true}});
  const TapeFile file = load_any(options.file, Check::structure);
  const Graph graph = options.planned ? planned_graph(file) : file.captured;
  const std::string text = options.format == "dot" ? graph_dot(graph) : graph_jsonl(graph);
  if (!options.output.empty()) write_text(options.output, text);
  if (options.json)
    answer(export_report(options.format, graph, options.output, text), answers_beside(options.output));
  else if (options.output.empty())
    answer(text);
  return kOk;
}

[[maybe_unused]] const bool registered =
    register_command("export", CommandGroup::graphs, "Write a graph for Graphviz (dot) or for scripts (jsonl).", table, run,
                     "tapedeck export dot c.tape | dot -Tsvg > c.svg");

}  // namespace

}  // namespace tapedeck::tool
