// JSON of the differences between tensors, which several reports share.
#include <tapedeck/capture/tool/reports/json_parts.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck::tool {

namespace {

Json element_json(const ElementDifference& d) {
  return {{"index", d.index},
          {"got", d.got},
          {"expected", d.expected},
          {"absolute", number_json(d.absolute)},
          {"relative", number_json(d.relative)}};
}

}  // namespace

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

Json difference_json(const TensorDifference& d) {
  Json j = {{"equal", d.equal()}, {"elements", d.elements}, {"differing", d.differing}};
  if (!d.types.empty()) j["types"] = d.types;
  if (d.differing > 0) j["first"] = element_json(d.first), j["worst"] = element_json(d.worst);
  return j;
}

}  // namespace tapedeck::tool
