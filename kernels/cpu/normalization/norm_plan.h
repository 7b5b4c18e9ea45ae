// The tasks of the normalisation kernels and the size of their workspace. Both are functions of the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tapedeck::kernels::cpu {

// batch_norm sees x as [n, c, s], where s is the number of elements of a plane. There are two ways to sum:
//   long planes (along)   the n * s elements of a channel are one column; its sequence is cut into pieces
//   short planes          x is n rows of c * s columns; each column is summed over pieces of rows, and the s columns of a
//   channel
//                         are merged at the end
struct BatchPlan {
  std::int64_t n, c, s;
  bool along;
  std::int64_t columns;  // c for long planes, c * s for short planes
  std::int64_t length;   // the number of elements of one column
  std::int64_t piece, pieces;

  BatchPlan(std::int64_t batch, std::int64_t channels, std::int64_t plane)
      : n(batch), c(channels), s(plane), along(s >= 256 || (s >= 16 && n < 32) || s == 0 || n == 0) {
    columns = along ? c : c * s;
    length = along ? n * s : n;
    piece = std::max<std::int64_t>(along ? 32768 : 512, (length + 31) / 32);
    pieces = std::max<std::int64_t>(1, (length + piece - 1) / piece);
  }
  // The workspace in bytes: two doubles for every piece of every column, then four coefficients for every column.
  std::int64_t workspace() const { return 8 * columns * (2 * pieces + 4); }
};

// layer_norm_grad and rms_norm_grad cut the rows into pieces. Each piece has its own sums for the gradients of the weight and
// the bias.
struct RowPlan {
  std::int64_t rows, length, piece, pieces;

  RowPlan(std::int64_t n_rows, std::int64_t row_length) : rows(n_rows), length(row_length) {
    piece = std::max(std::clamp<std::int64_t>(32768 / std::max<std::int64_t>(length, 1), 16, 1024), (rows + 63) / 64);
    pieces = std::max<std::int64_t>(1, (rows + piece - 1) / piece);
  }
  std::int64_t workspace(std::int64_t element_size) const { return 2 * pieces * length * element_size; }
};

}  // namespace tapedeck::kernels::cpu
