// The JSON of `maxbatch`.
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

namespace tapedeck::tool {

namespace {

Json point_json(const BatchPoint& p) {
  return {{"batch", p.batch},
          {"fits", p.fits},
          {"peak_bytes", p.peak_bytes},
          {"cost_ratio", p.cost_ratio},
          {"obstacle", p.obstacle}};
}

}  // namespace

std::string maxbatch_report(const std::string& subject, const BatchQuestion& question, const LargestBatch& found) {
  return text_of({{"schema", "tapedeck.maxbatch/1"},
                  {"subject", subject},
                  {"memory_bytes", question.memory},
                  {"fixed_bytes", question.fixed},
                  {"cost_limit", question.cost_limit},
                  {"batch", found.best.batch},
                  {"keep_all_batch", found.keep_all_batch >= 0 ? Json(found.keep_all_batch) : Json(nullptr)},
                  {"best", point_json(found.best)},
                  {"next", point_json(found.next)}});
}

}  // namespace tapedeck::tool
