// Attributes of resampling. `size` holds the spatial sizes of the result [n,c,spatial...].
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// interpolate_nearest.
struct InterpolateNearestAttrs {
  Ints size;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(InterpolateNearestAttrs, size)))
};

// align_corners: true aligns the centres of the corner elements of input and result, false aligns the outer edges of the corner
// elements.
struct InterpolateBilinearAttrs {
  Ints size;
  bool align_corners = false;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(InterpolateBilinearAttrs, size)), ATTR_FIELD(InterpolateBilinearAttrs, align_corners))
};

// The place of result element i between two of the `in` input elements: between `low` and `high`, with the fraction `part` of
// the way from low to high. The computation is in f64 for every element type.
struct Tap {
  std::int32_t low = 0;
  std::int32_t high = 0;
  double part = 0;
};

inline Tap bilinear_tap(std::int64_t i, std::int64_t in, std::int64_t out, bool align_corners) {
  double place = align_corners
                     ? (out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
                     : (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
  place = place < 0 ? 0 : place > static_cast<double>(in - 1) ? static_cast<double>(in - 1) : place;
  const auto low = static_cast<std::int32_t>(place);
  return {low, low + 1 < in ? low + 1 : low, place - low};
}

}  // namespace TAPEDECK_API
