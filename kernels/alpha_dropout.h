// The scale and the shift of alpha dropout, shared by the kernels and the gradient. They keep mean 0 and variance 1 (Klambauer
// et al., "Self-Normalizing Neural Networks", 2017).
#pragma once

#include <cmath>

namespace tapedeck::kernels {

inline constexpr double kSeluFloor = -1.7580993408473766;  // the limit of selu(x) as x goes to minus infinity

// `p` is the probability of dropping an element. The result is scale * x + shift, where x is kSeluFloor for a dropped element.
struct AlphaDropout {
  double scale, shift;
  explicit AlphaDropout(double p) {
    scale = 1 / std::sqrt((1 - p) * (1 + p * kSeluFloor * kSeluFloor));
    shift = -scale * kSeluFloor * p;
  }
};

}  // namespace tapedeck::kernels
