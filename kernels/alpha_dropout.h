// What alpha dropout multiplies with and adds, shared by the kernels and the gradient.
#pragma once

#include <cmath>

namespace tapedeck::kernels {

inline constexpr double kSeluFloor = -1.7580993408473766;  // the limit of selu at minus infinity

struct AlphaDropout {
  double scale, shift;
  explicit AlphaDropout(double p) {
    scale = 1 / std::sqrt((1 - p) * (1 + p * kSeluFloor * kSeluFloor));
    shift = -scale * kSeluFloor * p;
  }
};

}  // namespace tapedeck::kernels
