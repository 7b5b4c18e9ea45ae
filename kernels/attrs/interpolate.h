// Attributes of resampling: the sizes of the spatial dimensions [n,c,...] of the result.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct InterpolateNearestAttrs {
  Ints size;
  ATTR_FIELDS(ATTR_REQUIRED(InterpolateNearestAttrs, size))
};

struct InterpolateBilinearAttrs {  // align_corners: the corner elements' centres coincide, else the corners of their areas
  Ints size;
  bool align_corners = false;
  ATTR_FIELDS(ATTR_REQUIRED(InterpolateBilinearAttrs, size), ATTR_FIELD(InterpolateBilinearAttrs, align_corners))
};

// Between which two of `in` elements result element i of `out` lies, and how far towards the second. Computed in f64, whatever
// the type of the elements.
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
