// How the normalisations are cut into tasks and what they take of the workspace: functions of the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tapedeck::kernels::cpu {

// batch_norm sees x as [n, c, s]. Long planes are summed along s, a channel's n * s elements cut into pieces. Short ones are
// seen as n rows of c * s columns, summed column by column, the rows cut into pieces; a channel's columns are merged at the
// end.
struct BatchPlan {
  std::int64_t n, c, s;
  bool along;
  std::int64_t columns;  // c, or c * s
  std::int64_t length;   // elements of a column's sequence
  std::int64_t piece, pieces;

  BatchPlan(std::int64_t batch, std::int64_t channels, std::int64_t plane)
      : n(batch), c(channels), s(plane), along(s >= 256 || (s >= 16 && n < 32) || s == 0 || n == 0) {
    columns = along ? c : c * s;
    length = along ? n * s : n;
    piece = std::max<std::int64_t>(along ? 32768 : 512, (length + 31) / 32);
    pieces = std::max<std::int64_t>(1, (length + piece - 1) / piece);
  }
  // Two doubles for every piece of every column, then four coefficients of every column.
  std::int64_t workspace() const { return 8 * columns * (2 * pieces + 4); }
};

// layer_norm_grad and rms_norm_grad: pieces of rows, each with its own sums for the weight's and the bias' gradient.
struct RowPlan {
  std::int64_t rows, length, piece, pieces;

  RowPlan(std::int64_t n_rows, std::int64_t row_length) : rows(n_rows), length(row_length) {
    piece = std::max(std::clamp<std::int64_t>(32768 / std::max<std::int64_t>(length, 1), 16, 1024), (rows + 63) / 64);
    pieces = std::max<std::int64_t>(1, (rows + piece - 1) / piece);
  }
  std::int64_t workspace(std::int64_t element_size) const { return 2 * pieces * length * element_size; }
};

}  // namespace tapedeck::kernels::cpu
