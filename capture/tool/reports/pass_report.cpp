// The JSON answers of opt and reduce.
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

std::string opt_report(const std::vector<PassRecord>& records, const std::string& text) {
  Json j;
  j["schema"] = "tapedeck.opt/1";
  j["passes"] = Json::array();
  for (const PassRecord& r : records)
    j["passes"].push_back({{"name", r.name},
                           {"skipped", r.skipped},
                           {"nodes_before", r.nodes_before},
                           {"nodes_after", r.nodes_after},
                           {"live_bytes_before", r.bytes_before},
                           {"live_bytes_after", r.bytes_after},
                           {"ms", r.ms}});
  if (!text.empty()) j["graph"] = text;
  return text_of(j);
}

std::string passes_report(const std::vector<const Pass*>& passes) {
  Json j;
  j["schema"] = "tapedeck.passes/1";
  j["passes"] = Json::array();
  for (const Pass* pass : passes)
    j["passes"].push_back({{"name", pass->name},
                           {"aliases", pass->aliases},
                           {"doc", pass->doc},
                           {"before", pass->before},
                           {"after", pass->after},
                           {"always", pass->always},
                           {"needs_function", pass->asked_for},
                           {"in_regions", pass->in_regions}});
  return text_of(j);
}

std::string reduce_report(const Graph& before, const Graph& after, std::int64_t checks, bool interrupted,
                          const std::string& text) {
  Json j;
  j["schema"] = "tapedeck.reduce/1";
  j["nodes_before"] = before.node_count();
  j["nodes_after"] = after.node_count();
  j["checks"] = checks;
  j["interrupted"] = interrupted;
  if (!text.empty()) j["graph"] = text;
  return text_of(j);
}

}  // namespace tapedeck::tool
