// The JSON answers of `import`.
#pragma once

#include <tapedeck/capture/import/simrd.h>
#include <tapedeck/capture/onnx/import_onnx.h>

#include <string>

namespace tapedeck::tool {

// `trace` is null for a format that does not say how long values were held. `path` is empty if no file was written; then the
// answer has the text of the graph.
std::string import_report(const std::string& format, const Graph& graph, const ImportedTrace* trace, const std::string& path,
                          const std::string& text);
std::string output_name(const Graph& graph, std::size_t output);  // its own, else that of its value
// The same of a model.
std::string onnx_report(const OnnxImport& import, const std::string& path, const std::string& text);

}  // namespace tapedeck::tool
