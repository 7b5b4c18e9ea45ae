// Attributes of var, std and norm.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// var std: the divisor is count - correction. `axes` as in ReduceAttrs.
struct VarAttrs {
  Ints axes;
  double correction = 1;
  bool keepdims = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(VarAttrs, axes)), ATTR_FIELD(VarAttrs, correction), ATTR_FIELD(VarAttrs, keepdims))
};

// norm: the p-norm, where p is any number, inf and -inf included. `axes` as in ReduceAttrs.
struct NormAttrs {
  Ints axes;
  double p = 2;
  bool keepdims = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(NormAttrs, axes)), ATTR_FIELD(NormAttrs, p), ATTR_FIELD(NormAttrs, keepdims))
};

}  // namespace TAPEDECK_API
