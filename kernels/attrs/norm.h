// Attributes of the normalisations.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// batch_norm and its gradients: eps is added to the variance.
struct BatchNormAttrs {
  double eps = 1e-5;
  ATTR_FIELDS(ATTR_FIELD(BatchNormAttrs, eps))
};

// layer_norm rms_norm and their gradients. The statistics go over the last `dims` dimensions.
struct LayerNormAttrs {
  std::int64_t dims = 1;
  double eps = 1e-5;
  ATTR_FIELDS(never_size(ATTR_FIELD(LayerNormAttrs, dims)), ATTR_FIELD(LayerNormAttrs, eps))
};

// group_norm and its gradients: the number of groups of channels that share statistics.
struct GroupNormAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  ATTR_FIELDS(never_size(ATTR_REQUIRED(GroupNormAttrs, groups)), ATTR_FIELD(GroupNormAttrs, eps))
};

// ema: the exponential moving average of batch statistics, running + momentum * (batch - running).
struct EmaAttrs {
  double momentum = 0.1;
  ATTR_FIELDS(ATTR_FIELD(EmaAttrs, momentum))
};

}  // namespace TAPEDECK_API
