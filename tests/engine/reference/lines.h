// Takes lines along one axis out of an array and puts them back. The references of scans and sorts use these lines.
#pragma once

#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {

// For every line of `shape` along the axis, the flat indices of its elements in order.
inline std::vector<std::vector<std::size_t>> lines_along(const Shape& shape, std::int64_t axis) {
  std::vector<std::vector<std::size_t>> lines;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    auto at = coordinates(i, shape);
    if (at[axis] != 0) continue;
    lines.emplace_back();
    for (std::int64_t k = 0; k < shape[static_cast<int>(axis)]; ++k) {
      at[axis] = k;
      lines.back().push_back(static_cast<std::size_t>(index_of(at, shape)));
    }
  }
  return lines;
}

inline std::vector<double> line_of(const Array& x, const std::vector<std::size_t>& places) {
  std::vector<double> line;
  for (std::size_t p : places) line.push_back(x.v[p]);
  return line;
}

}  // namespace tapedeck::testing
