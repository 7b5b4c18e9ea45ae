// Attributes of the activations. Defaults are those that networks are published with.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct GeluAttrs {  // gelu gelu_grad: "none" = the normal distribution itself, "tanh" = its approximation by tanh
  Name approximate = "none";
  ATTR_FIELDS(ATTR_FIELD(GeluAttrs, approximate))
};

struct SoftplusAttrs {  // softplus softplus_grad: x itself where beta x > threshold
  double beta = 1;
  double threshold = 20;
  ATTR_FIELDS(ATTR_FIELD(SoftplusAttrs, beta), ATTR_FIELD(SoftplusAttrs, threshold))
};

struct EluAttrs {  // elu celu
  double alpha = 1;
  ATTR_FIELDS(ATTR_FIELD(EluAttrs, alpha))
};

// selu's constants: a layer of zero mean and unit variance keeps both.
inline constexpr double kSeluAlpha = 1.67326324235437728481;
inline constexpr double kSeluScale = 1.05070098735548049342;

struct EluGradAttrs {  // elu_grad: of y = scale (x if x > 0, else alpha (exp(slope x) - 1))
  double alpha = 1;
  double scale = 1;
  double slope = 1;
  ATTR_FIELDS(ATTR_FIELD(EluGradAttrs, alpha), ATTR_FIELD(EluGradAttrs, scale), ATTR_FIELD(EluGradAttrs, slope))
};

struct LeakyReluAttrs {
  double slope = 0.01;
  ATTR_FIELDS(ATTR_FIELD(LeakyReluAttrs, slope))
};

struct ShrinkAttrs {  // hardshrink softshrink: 0 where |x| <= bound
  double bound = 0.5;
  ATTR_FIELDS(ATTR_FIELD(ShrinkAttrs, bound))
};

struct ThresholdAttrs {  // threshold: x where x > threshold, else value
  double threshold = 0;
  double value = 0;
  ATTR_FIELDS(ATTR_REQUIRED(ThresholdAttrs, threshold), ATTR_REQUIRED(ThresholdAttrs, value))
};

}  // namespace TAPEDECK_API
