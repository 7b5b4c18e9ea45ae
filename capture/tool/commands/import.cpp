// import: an ONNX model as a graph or a step of training; a computation graph or a trace of another program as a graph of
// `opaque` nodes. All can be planned and looked at.
#include <tapedeck/capture/tool/commands/onnx_options.h>
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/import_report.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/import/graph_json.h>
#include <tapedeck/capture/import/import_formats.h>
#include <tapedeck/capture/import/simrd.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

namespace tapedeck::tool {

namespace {

struct ImportOptions {
  std::string format;   // onnx | graph | simrd
  std::string file;     // "-": stdin
  std::string results;  // empty: held
  std::string output;
  bool json = false;
  OnnxRequest onnx;
};

constexpr const char* kOnnxHelp = "a model, with its weights";

// "graph: node-link JSON with costs and bytes. simrd: ..."
std::string formats_help() {
  std::string help = fmt::format("onnx: {}.", kOnnxHelp);
  for (const ImportFormat& format : import_formats()) help += fmt::format(" {}: {}.", format.name, format.help);
  return help;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names = {"onnx"};
  for (const ImportFormat& format : import_formats()) names.emplace_back(format.name);
  return names;
}

std::vector<Option> common_options(ImportOptions& o) {
  return {
      {.name = "FORMAT", .to = &o.format, .help = formats_help(), .required = true, .choices = format_names()},
      {.name = "FILE", .to = &o.file, .help = "The file, as it is or compressed by gzip. - reads stdin.", .required = true},
      {.name = "--results",
       .metavar = "HOW",
       .to = &o.results,
       .help =
           "What happens to values that nobody reads or that are held at the end. held: a last node reads them, and they count "
           "in the peak from their nodes on. returned: they are outputs, and count from start to end. For graph and simrd: a "
           "model states its outputs.",
       .fallback = "held",
       .choices = {"held", "returned"}},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write a .tape here, or with any other ending the text of the graph.",
       .group = "Output",
       .fallback = "the text to stdout"},
      json_option(&o.json),
  };
}

std::vector<Option> import_table(ImportOptions& o) { return joined({common_options(o), onnx_options(o.onnx)}); }

std::string read_foreign(const std::string& path) {
  return unpacked_text(path == "-" ? read_text_from(STDIN_FILENO, source_name(path)) : read_text_file(path), source_name(path));
}

void write_graph(const std::string& path, const Graph& graph, const std::string& text, const std::string& source) {
  if (!path.ends_with(".tape")) return write_text(path, text);
  TapeFile file;
  file.captured = graph;
  file.metadata["imported_from"] = source;
  save_tape(path, file);
}

// What the trace knows beyond its graph.
std::string trace_note(const ImportedTrace& trace) {
  return fmt::format("{} calls, {} of them only views, {} mutations; the program held {} at most, {} at the end", trace.calls,
                     trace.views, trace.mutations, human_size(trace.held_peak_bytes), human_size(trace.held_end_bytes));
}

int run_import(const ImportOptions& options) {
  const StopAtInterrupt stop;
  check_outputs({options.file}, {{"-o", options.output, !options.output.ends_with(".tape")}});
  if (options.format == "onnx") {
    if (!options.results.empty()) throw UsageError("--results is for the formats graph and simrd: a model states its outputs");
    OnnxRequest request = options.onnx;
    request.file = options.file;
    request.output = options.output;
    request.json = options.json;
    return import_onnx_model(request);
  }
  if (const std::string other = given_onnx_option(options.onnx); !other.empty())
    throw UsageError(fmt::format("{} belongs to the format onnx", other));
  std::optional<ImportedTrace> trace;
  Graph graph;
  {
    const Working working("reading");
    const std::string bytes = read_foreign(options.file);
    const ImportedResults results = options.results == "returned" ? ImportedResults::returned : ImportedResults::held;
    if (options.format == "simrd") trace = import_simrd(bytes, source_name(options.file), results);
    graph = trace ? trace->graph : import_graph_json(bytes, source_name(options.file), results);
  }
  const std::string text = options.output.ends_with(".tape") ? "" : tapedeck::print(graph);
  if (!options.output.empty()) write_graph(options.output, graph, text, options.format);
  if (trace && !options.json) note(trace_note(*trace));
  if (options.json)
    answer(import_report(options.format, graph, trace ? &*trace : nullptr, options.output, text),
           answers_beside(options.output));
  else if (options.output.empty())
    answer(text);
  return kOk;
}

[[maybe_unused]] const bool import_registered = register_command(
    "import", CommandGroup::graphs,
    "Read a model (onnx), a graph (graph) or a trace (simrd) of another program, to plan it and look at it.", import_table,
    run_import,
    "A model becomes a graph that can run: its weights are state, and --train makes a step of training of it.\n"
    "Nodes of the other formats become `opaque`: they take the microseconds and the bytes of the file, and a\n"
    "replay fills their results with numbers that mean nothing.\n"
    "tapedeck import onnx net.onnx -o net.tape --dims batch=32 --train --loss cross_entropy; tapedeck plan net.tape\n"
    "tapedeck import graph net.json -o net.tape; tapedeck plan net.tape --budget 50%");

}  // namespace

}  // namespace tapedeck::tool
