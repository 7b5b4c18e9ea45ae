// Makes tensors with the same values but other strides. The bytes between the elements are garbage, so that a test notices a
// kernel that reads them.
#pragma once

#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <cstring>
#include <string>
#include <vector>

namespace tapedeck::testing {

struct Layout {
  const char* name;
  bool reversed;        // memory holds the dimensions in reverse order
  std::int64_t gap;     // factor on every stride
  std::int64_t offset;  // elements before the first one
};
inline constexpr Layout kLayouts[] = {
    {"transposed", true, 1, 0},
    {"sliced", false, 1, 3},
    {"every second element", false, 2, 1},
    {"transposed, sliced with a step", true, 3, 5},
};

// The elements of a dense tensor in another layout. Each row is also followed by a gap of one element.
inline Tensor laid_out(const Tensor& t, const Layout& layout) {
  const Shape shape = t.shape();
  std::int64_t strides[kMaxRank] = {}, extent = layout.gap;
  for (int k = 0; k < shape.rank; ++k) {
    const int d = layout.reversed ? k : shape.rank - 1 - k;
    strides[d] = extent;
    extent = extent * std::max<std::int64_t>(shape[d], 1) + (layout.offset ? 1 : 0);
  }
  const std::size_t size = dtype_size(t.dtype());
  std::vector<unsigned char> bytes(static_cast<std::size_t>(layout.offset + extent + 1) * size,
                                   t.dtype() == DType::boolean ? 1 : 0x7f);
  const Tensor dense = contiguous(t);
  const auto* from = static_cast<const unsigned char*>(dense.data());
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const std::vector<std::int64_t> at = coordinates(i, shape);
    std::int64_t to = layout.offset;
    for (int d = 0; d < shape.rank; ++d) to += at[d] * strides[d];
    std::memcpy(bytes.data() + static_cast<std::size_t>(to) * size, from + static_cast<std::size_t>(i) * size, size);
  }
  const Tensor base = from_bytes({t.dtype(), Shape{layout.offset + extent + 1}}, bytes.data());
  return Tensor(detail::new_view(*base.impl(), shape, layout.offset, strides));
}

// Repeats the first slice along each dimension marked in `dims`, by a stride of zero.
inline Tensor repeated(const Tensor& t, unsigned dims) {
  std::int64_t strides[kMaxRank] = {};
  const Tensor dense = contiguous(t);
  for (int d = 0; d < t.rank(); ++d) strides[d] = ((dims >> d) & 1) ? 0 : dense.strides()[d];
  return Tensor(detail::new_view(*dense.impl(), t.shape(), 0, strides));
}

inline Tensor dense_image(const Tensor& t) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes()) + 8);
  t.copy_to(bytes.data(), static_cast<std::size_t>(t.bytes()), dtype_size(t.dtype()));
  return from_bytes(t.type(), bytes.data());
}

}  // namespace tapedeck::testing
