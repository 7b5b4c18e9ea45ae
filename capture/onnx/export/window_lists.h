// Lists of numbers for the spatial dimensions of [n, c, ...].
#pragma once

#include <tapedeck/capture/onnx/export/node_export.h>

namespace tapedeck::onnx {

inline Integers for_each_dim(const Ints& list, int dims) {
  return list.size == 1 ? Integers(static_cast<std::size_t>(dims), list[0]) : list_of(list);
}
// Pads in front of each dimension, then behind each.
inline Integers pads_of(const Ints& list, int dims) {
  Integers pads = for_each_dim(list, dims);
  if (pads.size() == static_cast<std::size_t>(dims)) pads.insert(pads.end(), pads.begin(), pads.end());
  return pads;
}
inline Integers spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }
inline Shape with_spatial(std::int64_t first, std::int64_t second, const Integers& sizes) {
  Integers all = {first, second};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return shape_of(all);
}

}  // namespace tapedeck::onnx
