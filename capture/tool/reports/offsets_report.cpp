#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

std::string offsets_report(const OffsetsSummary& s) {
  Json j = {{"schema", "tapedeck.offsets/1"}, {"buffers", s.buffers}, {"lower_bound", s.lower_bound},
            {"proven_bound", s.proven_bound}, {"peak", s.peak},       {"optimal", s.optimal},
            {"seconds", s.seconds},           {"work", s.work},       {"arenas", s.arenas},
            {"interrupted", s.interrupted}};
  j["capacity"] = s.capacity >= 0 ? Json(s.capacity) : Json();
  return text_of(j);
}

}  // namespace tapedeck::tool
