// Attributes of the activations. The defaults are the ones that PyTorch uses.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// gelu gelu_grad: "none" uses the normal distribution itself, "tanh" its approximation by tanh.
struct GeluAttrs {
  Name approximate = "none";
  ATTR_FIELDS(ATTR_FIELD(GeluAttrs, approximate))
};

// softplus softplus_grad: log(1 + e^(beta x)) / beta, and x itself where beta x > threshold.
struct SoftplusAttrs {
  double beta = 1;
  double threshold = 20;
  ATTR_FIELDS(ATTR_FIELD(SoftplusAttrs, beta), ATTR_FIELD(SoftplusAttrs, threshold))
};

// elu celu: the result tends to -alpha as x goes to minus infinity.
struct EluAttrs {
  double alpha = 1;
  ATTR_FIELDS(ATTR_FIELD(EluAttrs, alpha))
};

// The constants of selu. With them a layer keeps inputs of mean 0 and variance 1 at mean 0 and variance 1.
inline constexpr double kSeluAlpha = 1.67326324235437728481;
inline constexpr double kSeluScale = 1.05070098735548049342;

// elu_grad: the gradient of y = scale * (x if x > 0, else alpha (e^(slope x) - 1)).
struct EluGradAttrs {
  double alpha = 1;
  double scale = 1;
  double slope = 1;
  ATTR_FIELDS(ATTR_FIELD(EluGradAttrs, alpha), may_scale(ATTR_FIELD(EluGradAttrs, scale)), ATTR_FIELD(EluGradAttrs, slope))
};

// leaky_relu: the factor of negative x.
struct LeakyReluAttrs {
  double slope = 0.01;
  ATTR_FIELDS(ATTR_FIELD(LeakyReluAttrs, slope))
};

// hardshrink softshrink: the result is 0 where |x| <= bound.
struct ShrinkAttrs {
  double bound = 0.5;
  ATTR_FIELDS(ATTR_FIELD(ShrinkAttrs, bound))
};

// threshold: the result is x where x > threshold, else value.
struct ThresholdAttrs {
  double threshold = 0;
  double value = 0;
  ATTR_FIELDS(ATTR_REQUIRED(ThresholdAttrs, threshold), may_scale(ATTR_REQUIRED(ThresholdAttrs, value)))
};

}  // namespace TAPEDECK_API
