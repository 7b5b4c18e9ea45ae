// Attributes of the diagonal ops, and the place of a diagonal inside a matrix.
#pragma once

#include <tapedeck/kernels/attrs.h>

#include <algorithm>

namespace tapedeck TAPEDECK_API {

// The elements [.., i, .., i + offset, ..], where i counts along axis1 and i + offset along axis2. Both axes are normalised.
struct DiagonalAttrs {
  std::int64_t offset = 0;
  std::int64_t axis1 = 0;
  std::int64_t axis2 = 1;
  ATTR_FIELDS(never_size(ATTR_FIELD(DiagonalAttrs, offset)), never_size(ATTR_FIELD(DiagonalAttrs, axis1)),
              never_size(ATTR_FIELD(DiagonalAttrs, axis2)))
};

// The row and column of the first element of a diagonal, and the number of its elements: 0 if the diagonal lies outside the
// matrix.
struct DiagonalRange {
  std::int64_t row = 0, column = 0, length = 0;
};

inline DiagonalRange diagonal_range(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  if (offset >= columns || offset <= -rows) return {};
  const std::int64_t row = offset < 0 ? -offset : 0, column = offset < 0 ? 0 : offset;
  return {row, column, std::min(rows - row, columns - column)};
}

}  // namespace TAPEDECK_API
