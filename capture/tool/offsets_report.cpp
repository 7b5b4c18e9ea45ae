#include <tapedeck/capture/tool/report.h>

#include <nlohmann/json.hpp>

namespace tapedeck::tool {

std::string offsets_report(const OffsetsSummary& s) {
  nlohmann::ordered_json j = {{"schema", "tapedeck.offsets/1"}, {"buffers", s.buffers}, {"lower_bound", s.lower_bound}, {"proven_bound", s.proven_bound}, {"peak", s.peak}, {"optimal", s.optimal},
                              {"seconds", s.seconds},           {"work", s.work},       {"arenas", s.arenas},           {"interrupted", s.interrupted}};
  j["capacity"] = s.capacity >= 0 ? nlohmann::ordered_json(s.capacity) : nlohmann::ordered_json();
  return j.dump(2) + "\n";
}

}  // namespace tapedeck::tool
