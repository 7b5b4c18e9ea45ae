#include <tapedeck/capture/tool/reports/import_report.h>

#include <tapedeck/capture/tool/reports/json_parts.h>

#include <utility>

namespace tapedeck::tool {

namespace {

Json trace_json(const ImportedTrace& trace) {
  return {{"calls", trace.calls},
          {"views", trace.views},
          {"mutations", trace.mutations},
          {"microseconds", trace.microseconds},
          {"held_peak_bytes", trace.held_peak_bytes},
          {"held_end_bytes", trace.held_end_bytes},
          {"constant_bytes", trace.constant_bytes}};
}

}  // namespace

std::string import_report(const std::string& format, const Graph& graph, const ImportedTrace* trace, const std::string& path,
                          const std::string& text) {
  std::int64_t links = 0, bytes = 0;
  double microseconds = 0;
  for (const Node& node : graph.nodes) {
    links += node.n_inputs;
    microseconds += static_cast<const OpaqueAttrs*>(graph.attributes(node))->us;
  }
  for (const Value& value : graph.values) bytes += value.type.bytes();
  return text_of({{"schema", "tapedeck.import/1"},
                  {"format", format},
                  {"graph", graph.name.str()},
                  {"nodes", graph.node_count()},
                  {"links", links},
                  {"inputs", graph.n_inputs},
                  {"state", graph.n_state},
                  {"outputs", graph.outputs.size()},
                  {"bytes", bytes},
                  {"microseconds", microseconds},
                  {"trace", trace ? trace_json(*trace) : Json(nullptr)},
                  {"file", path.empty() ? Json(nullptr) : Json(path)},
                  {"text", path.empty() ? Json(text) : Json(nullptr)}});
}

std::string output_name(const Graph& graph, std::size_t output) {
  const Name name = output < graph.output_names.size() ? graph.output_names[output] : Name();
  return name.empty() ? graph.value_name(graph.outputs[output]) : name.str();
}

std::string onnx_report(const OnnxImport& import, const std::string& path, const std::string& text) {
  const Graph& graph = import.file.captured;
  const auto value = [&](const std::string& name, ValueId v) {
    const Type& type = graph.values[static_cast<std::size_t>(v)].type;
    return Json{{"name", name}, {"type", to_string(type)}, {"bytes", type.bytes()}};
  };
  Json inputs = Json::array(), outputs = Json::array();
  for (ValueId v = 0; v < graph.n_inputs; ++v) inputs.push_back(value(graph.value_name(v), v));
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back(value(output_name(graph, i), graph.outputs[i]));
  Json parameters = Json::array();
  std::int64_t bytes = 0;
  for (const OnnxImport::Parameter& p : import.parameters) {
    parameters.push_back(
        {{"name", p.name}, {"initializer", p.initializer}, {"type", to_string(p.type)}, {"bytes", p.type.bytes()}});
    bytes += p.type.bytes();
  }
  Json ops = Json::object();
  for (const auto& [op, count] : import.ops) ops[op] = count;
  return text_of({{"schema", "tapedeck.import_onnx/1"},
                  {"format", "onnx"},
                  {"graph", graph.name.str()},
                  {"opset", import.opset},
                  {"producer", import.producer},
                  {"onnx_ops", std::move(ops)},
                  {"nodes", graph.node_count()},
                  {"inputs", std::move(inputs)},
                  {"outputs", std::move(outputs)},
                  {"parameters", std::move(parameters)},
                  {"parameter_bytes", bytes},
                  {"notes", import.notes},
                  {"file", path.empty() ? Json(nullptr) : Json(path)},
                  {"text", path.empty() ? Json(text) : Json(nullptr)}});
}

}  // namespace tapedeck::tool
