#include <tapedeck/capture/tool/reports/import_report.h>

#include <tapedeck/capture/tool/reports/json_parts.h>

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

}  // namespace tapedeck::tool
