// Attributes of the normalisations.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct BatchNormAttrs {
  double eps = 1e-5;
  ATTR_FIELDS(ATTR_FIELD(BatchNormAttrs, eps))
};

// layer_norm rms_norm and their gradients. The statistics go over the last `dims` dimensions.
struct LayerNormAttrs {
  std::int64_t dims = 1;
  double eps = 1e-5;
  ATTR_FIELDS(ATTR_FIELD(LayerNormAttrs, dims), ATTR_FIELD(LayerNormAttrs, eps))
};

struct GroupNormAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  ATTR_FIELDS(ATTR_REQUIRED(GroupNormAttrs, groups), ATTR_FIELD(GroupNormAttrs, eps))
};

struct EmaAttrs {
  double momentum = 0.1;
  ATTR_FIELDS(ATTR_FIELD(EmaAttrs, momentum))
};

}  // namespace TAPEDECK_API
