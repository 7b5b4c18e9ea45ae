// Attributes of the diagonal ops, and where a diagonal lies inside a matrix.
#pragma once

#include <tapedeck/kernels/attrs.h>

#include <algorithm>

namespace tapedeck TAPEDECK_API {

struct DiagonalAttrs {  // elements [.., i, .., i + offset, ..] of axis1 and axis2, both normalised
  std::int64_t offset = 0;
  std::int64_t axis1 = 0;
  std::int64_t axis2 = 1;
  ATTR_FIELDS(ATTR_FIELD(DiagonalAttrs, offset), ATTR_FIELD(DiagonalAttrs, axis1), ATTR_FIELD(DiagonalAttrs, axis2))
};

// The first element's row and column, and how many there are: none if the offset leaves the matrix.
struct DiagonalRange {
  std::int64_t row = 0, column = 0, length = 0;
};

inline DiagonalRange diagonal_range(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  if (offset >= columns || offset <= -rows) return {};
  const std::int64_t row = offset < 0 ? -offset : 0, column = offset < 0 ? 0 : offset;
  return {row, column, std::min(rows - row, columns - column)};
}

}  // namespace TAPEDECK_API
