// Attributes of ops that make a tensor from a rule: arange, linspace, eye.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// arange: start, start + step, start + 2 step, ..., all before stop.
struct ArangeAttrs {
  double start = 0;
  double stop = 0;
  double step = 1;
  DType dtype = DType::f32;
  ATTR_FIELDS(may_scale(ATTR_FIELD(ArangeAttrs, start)), may_scale(ATTR_REQUIRED(ArangeAttrs, stop)),
              may_scale(ATTR_FIELD(ArangeAttrs, step)), ATTR_REQUIRED(ArangeAttrs, dtype))
};

// linspace: `count` numbers from start to stop, both included.
struct LinspaceAttrs {
  double start = 0;
  double stop = 0;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  ATTR_FIELDS(may_scale(ATTR_REQUIRED(LinspaceAttrs, start)), may_scale(ATTR_REQUIRED(LinspaceAttrs, stop)),
              ATTR_REQUIRED(LinspaceAttrs, count), ATTR_FIELD(LinspaceAttrs, dtype))
};

// eye: a matrix with ones on the main diagonal and zeros elsewhere.
struct EyeAttrs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  DType dtype = DType::f32;
  ATTR_FIELDS(ATTR_REQUIRED(EyeAttrs, rows), ATTR_REQUIRED(EyeAttrs, columns), ATTR_FIELD(EyeAttrs, dtype))
};

}  // namespace TAPEDECK_API
