// Merges leading dimensions, for products with one weight. Without this, the gradient of the weight would be one product for
// each leading index, and a sum of these.
#pragma once

#include <tapedeck/engine/ops/ops.h>

namespace tapedeck {

// x [..., k] as one matrix [rows, k].
inline Tensor as_rows(const Tensor& x) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.rank(); ++d) rows *= x.size(d);
  return reshape(x, Shape{rows, x.size(-1)});
}

// rows [n, k] with the leading dimensions of `like`: [..., k].
inline Tensor rows_like(const Tensor& rows, const Tensor& like) {
  Shape shape = like.shape();
  shape[shape.rank - 1] = rows.size(1);
  return reshape(rows, shape);
}

}  // namespace tapedeck
