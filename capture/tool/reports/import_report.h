// The JSON answer of `import`.
#pragma once

#include <tapedeck/capture/import/simrd.h>

#include <string>

namespace tapedeck::tool {

// `trace` is null for a format that does not say how long values were held. `path` is empty if no file was written; then the
// answer has the text of the graph.
std::string import_report(const std::string& format, const Graph& graph, const ImportedTrace* trace, const std::string& path,
                          const std::string& text);

}  // namespace tapedeck::tool
