#include <tapedeck/capture/import/import_formats.h>

#include <tapedeck/capture/import/graph_json.h>
#include <tapedeck/capture/import/simrd.h>

namespace tapedeck {

namespace {

Graph graph_of_trace(std::string_view text, const std::string& file, ImportedResults results) {
  return import_simrd(text, file, results).graph;
}

}  // namespace

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> formats = {
      {"graph", "node-link JSON with costs and bytes", "*.json *.json.gz", import_graph_json},
      {"simrd", "a trace of an eager program, a JSON object a line", "*.log *.log.gz *.simrd *.jsonl", graph_of_trace},
  };
  return formats;
}

}  // namespace tapedeck
