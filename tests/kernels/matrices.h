// Matrices in other layouts than row by row, for tests of products.
#pragma once

#include <tapedeck/tests/kernels/views.h>

#include <cstring>
#include <utility>
#include <vector>

namespace tapedeck::testing {

// The same matrix in column-major order.
inline Array column_major(const Array& a) {
  std::vector<int> axes;
  for (int d = 0; d < a.view.rank; ++d) axes.push_back(d);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return permuted(dense_copy(permuted(a, axes)), axes);
}

// The same matrix as the left part of a matrix with rows of `width` elements.
inline Array gapped(const Array& a, std::int64_t width) {
  Sizes sizes(a.view.sizes, a.view.sizes + a.view.rank);
  sizes.back() = width;
  Array wide = make_array(a.view.dtype, sizes);
  wide.view.sizes[a.view.rank - 1] = a.view.sizes[a.view.rank - 1];
  for (std::int64_t i = 0; i < a.numel(); ++i) std::memcpy(wide.address(i), a.address(i), dtype_size(a.view.dtype));
  return wide;
}

}  // namespace tapedeck::testing
