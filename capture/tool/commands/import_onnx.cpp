#include <tapedeck/capture/tool/commands/onnx_options.h>

#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/line/command.h>
#include <tapedeck/capture/tool/reports/import_report.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace tapedeck::tool {

namespace {

// "batch=32" as a name and a size.
std::pair<std::string, std::int64_t> dim_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::int64_t size = -1;
  if (equals != std::string::npos && equals > 0) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, size);
    if (error != std::errc() || stop != end) size = -1;
  }
  if (size < 0) throw UsageError(fmt::format("--dims '{}' is not NAME=SIZE", text));
  return {text.substr(0, equals), size};
}

OnnxOptions options_of(const OnnxRequest& request) {
  OnnxOptions options;
  for (const std::string& text : request.dims)
    if (!options.dims.insert(dim_of(text)).second) throw UsageError(fmt::format("--dims gives '{}' twice", dim_of(text).first));
  options.parameters = request.parameters;
  options.train = request.train;
  options.loss = request.loss;
  options.optimizer = request.optimizer;
  options.abstract = request.abstract;
  return options;
}

std::string list_inputs(const Graph& graph) {
  std::vector<std::string> texts;
  for (ValueId v = 0; v < graph.n_inputs; ++v)
    texts.push_back(fmt::format("{} {}", graph.value_name(v), to_string(graph.values[static_cast<std::size_t>(v)].type)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string list_outputs(const Graph& graph) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    texts.push_back(
        fmt::format("{} {}", output_name(graph, i), to_string(graph.values[static_cast<std::size_t>(graph.outputs[i])].type)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Two lines: what the model was, and what the graph takes and gives.
std::string summary(const std::string& path, const OnnxImport& import) {
  const Graph& graph = import.file.captured;
  std::int64_t nodes = 0, bytes = 0;
  for (const auto& [op, count] : import.ops) nodes += count;
  for (const OnnxImport::Parameter& p : import.parameters) bytes += p.type.bytes();
  return fmt::format("wrote {}: {} of {} of ONNX (opset {}{}); {}, {}\n{} -> {}\n", path, plural(graph.node_count(), "node"),
                     nodes, import.opset, import.producer.empty() ? "" : ", " + import.producer,
                     plural(std::ssize(import.parameters), "parameter"), human_size(bytes), list_inputs(graph),
                     list_outputs(graph));
}

}  // namespace

std::vector<Option> onnx_options(OnnxRequest& r) {
  const char* group = "Options for onnx";
  return {
      {.name = "--dims",
       .metavar = "NAME=SIZE,...",
       .to = &r.dims,
       .help = "Sizes that the model leaves open, by their names; x.0 is dimension 0 of the input x.",
       .group = group,
       .several = Several::commas},
      {.name = "--as-parameters",
       .metavar = "PATTERN,...",
       .to = &r.parameters,
       .help = "The initializers that are parameters, by patterns with *.",
       .group = group,
       .fallback = "those that look like weights",
       .several = Several::commas},
      {.name = "--train",
       .to = &r.train,
       .help = "Make a step of training: forward, loss, backward, optimizer. Dropout and batch norm work as in training.",
       .group = group},
      {.name = "--loss",
       .metavar = "LOSS",
       .to = &r.loss,
       .help = "The loss of the first output of floating numbers and a target: cross_entropy, mse or bce; or the name of an "
               "output that is the loss.",
       .group = group},
      {.name = "--optimizer",
       .metavar = "NAME",
       .to = &r.optimizer,
       .help = "The optimizer of --train.",
       .group = group,
       .choices = {"sgd", "adamw"}},
      {.name = "--abstract", .to = &r.abstract, .help = "Write types only, without the values of the weights.", .group = group},
  };
}

std::string given_onnx_option(const OnnxRequest& r) {
  if (!r.dims.empty()) return "--dims";
  if (!r.parameters.empty()) return "--as-parameters";
  if (r.train) return "--train";
  if (!r.loss.empty()) return "--loss";
  if (r.optimizer != "sgd") return "--optimizer";
  return r.abstract ? "--abstract" : "";
}

int import_onnx_model(const OnnxRequest& request) {
  if (request.file == "-")
    throw UsageError("an ONNX model is read from a file, because its weights may lie in files beside it");
  if (!request.train && (!request.loss.empty() || request.optimizer != "sgd"))
    throw UsageError("--loss and --optimizer belong to --train");
  OnnxImport import;
  {
    const Working working("importing");
    import = import_onnx(request.file, options_of(request));
  }
  const bool tape = request.output.ends_with(".tape");
  const std::string text = tape ? "" : tapedeck::print(import.file.captured);
  if (tape)
    save_tape(request.output, import.file);
  else if (!request.output.empty())
    write_text(request.output, text);
  if (request.json) {
    answer(onnx_report(import, request.output, text), answers_beside(request.output));
    return kOk;
  }
  for (const std::string& sentence : import.notes) note(sentence);
  answer(request.output.empty() ? text : summary(request.output, import));
  return kOk;
}

}  // namespace tapedeck::tool
