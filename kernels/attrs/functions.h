// Attributes of the mathematical functions.
#pragma once

#include <tapedeck/kernels/attrs.h>

#include <limits>

namespace tapedeck TAPEDECK_API {

// clamp: the two bounds; an infinite bound does not bind.
struct ClampAttrs {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  ATTR_FIELDS(ATTR_FIELD(ClampAttrs, min), ATTR_FIELD(ClampAttrs, max))
};

// polygamma: the n-th derivative of digamma.
struct PolygammaAttrs {
  std::int64_t n = 1;
  ATTR_FIELDS(never_size(ATTR_REQUIRED(PolygammaAttrs, n)))
};

// isclose: true where |a - b| <= atol + rtol |b|.
struct IsCloseAttrs {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
  ATTR_FIELDS(ATTR_FIELD(IsCloseAttrs, rtol), ATTR_FIELD(IsCloseAttrs, atol), ATTR_FIELD(IsCloseAttrs, equal_nan))
};

// nan_to_num: the values that replace NaN, inf and -inf.
struct NanToNumAttrs {
  double nan = 0;
  double posinf = 0;
  double neginf = 0;
  ATTR_FIELDS(ATTR_FIELD(NanToNumAttrs, nan), ATTR_REQUIRED(NanToNumAttrs, posinf), ATTR_REQUIRED(NanToNumAttrs, neginf))
};

}  // namespace TAPEDECK_API
