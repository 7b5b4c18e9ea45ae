// Matrices inside views, for products of all element types.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

// A matrix inside a view, with any row and column strides (in elements).
template <class T>
struct Matrix {
  T* data;
  std::int64_t rows, cols, row_stride, col_stride;

  T* at(std::int64_t r, std::int64_t c) const { return data + r * row_stride + c * col_stride; }
};

// Whether every block of the matrix is row-major as it lies.
template <class T>
bool is_plain(const Matrix<const T>& m) {
  return (m.col_stride == 1 || m.cols == 1) && (m.row_stride >= m.cols || m.rows == 1);
}

// A view of any rank and strides as a matrix: the last dimension is a row, and all other dimensions are counted row-major.
template <class T>
struct Rows {
  const View& view;
  std::int64_t cols;

  const T* row(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int d = view.rank - 2; d >= 0; --d) {
      offset += index % view.sizes[d] * view.strides[d];
      index /= view.sizes[d];
    }
    return view.as<const T>() + offset;
  }
};

// Matrix number `index` of a view. The leading dimensions count the matrices; a broadcast dimension has stride 0.
template <class T>
Matrix<T> matrix_of(const View& v, std::int64_t index) {
  std::int64_t offset = 0;
  for (int d = v.rank - 3; d >= 0; --d) {
    offset += index % v.sizes[d] * v.strides[d];
    index /= v.sizes[d];
  }
  const int r = v.rank - 2, c = v.rank - 1;
  return {static_cast<T*>(v.data) + offset, v.sizes[r], v.sizes[c], v.strides[r], v.strides[c]};
}

}  // namespace tapedeck::kernels::cpu
