// A product with a bias, for the layers that compute one.
#pragma once

#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck {

// x W, plus the bias if there is one. Under autocast the bias is part of the product, so that the result has the low dtype: the
// sum of a half and an f32 bias would be f32, and so would be all that is computed from it and kept for backward.
inline Tensor affine(const Arg& x, const Tensor& weight, const Tensor& bias) {
  if (!bias.defined()) return matmul(x, weight);
  if (thread_state().autocast) return linear(x, weight, bias);
  return add(matmul(x, weight), bias);
}

}  // namespace tapedeck
