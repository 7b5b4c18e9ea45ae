// export: a graph for other programs, as DOT of Graphviz, as one JSON object a line, or as a model in the ONNX format.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/explain/export_graph.h>
#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck::tool {

namespace {

struct ExportOptions {
  std::string format;  // dot | jsonl | onnx
  std::string file;
  bool planned = false;
  bool external_data = false;
  bool random = false;
  std::string output;
  bool json = false;
};

std::vector<Option> export_table(ExportOptions& o) {
  return {
      {.name = "FORMAT",
       .to = &o.format,
       .help = "dot: a picture for Graphviz. jsonl: a JSON object a line, for scripts. onnx: a model with its weights, for "
               "other programs; it needs -o.",
       .required = true,
       .choices = {"dot", "jsonl", "onnx"}},
      file_argument(&o.file),
      {.name = "--planned",
       .to = &o.planned,
       .help = "The planned graph, with what is recomputed, instead of the captured one. A file without a plan is planned."},
      {.name = "--external-data",
       .to = &o.external_data,
       .help =
           "onnx: the bytes of large tensors go into a file beside the model, FILE.data. Models of 2 GiB and more need it."},
      {.name = "--random",
       .to = &o.random,
       .help = "onnx: the model draws random numbers of its own where the graph draws, for dropout for instance. Without this "
               "such a graph is refused."},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the text, or the model, here instead of to stdout.",
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

int run_onnx(const ExportOptions& options) {
  if (options.output.empty() || options.output == "-") throw UsageError("`export onnx` writes a file: -o model.onnx");
  if (options.planned) throw UsageError("`export onnx` takes the captured graph: leave out --planned");
  std::vector<OutputFile> outputs = {{"-o", options.output}};
  const std::string data = options.output + ".data";
  if (options.external_data) outputs.push_back({"--external-data", data});
  check_outputs({options.file}, outputs);
  const TapeFile file = load_any(options.file, Check::all);
  const OnnxExport result =
      export_onnx(options.output, file, {.external_data = options.external_data, .random = options.random});
  answer(options.json
             ? export_onnx_report(file.captured, options.output, result)
             : fmt::format("wrote {}: {}, {}\n", options.output, plural(result.nodes, "node"), human_size(result.bytes)));
  return kOk;
}

int run_export(const ExportOptions& options) {
  const StopAtInterrupt stop;
  if (options.format == "onnx") return run_onnx(options);
  if (options.external_data) throw UsageError("--external-data is for `export onnx`");
  if (options.random) throw UsageError("--random is for `export onnx`");
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

[[maybe_unused]] const bool export_registered = register_command(
    "export", CommandGroup::graphs, "Write a graph for Graphviz (dot), for scripts (jsonl), or as a model (onnx).",
    export_table, run_export, "tapedeck export dot c.tape | dot -Tsvg > c.svg");

}  // namespace

}  // namespace tapedeck::tool
