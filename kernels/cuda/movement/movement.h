// The families of this room share this: elements by width, indices of both widths, and the copies between views that most ops
// are made of. The kernels move bits: an element is an unsigned integer as wide as its type, or 16 bytes of neighbours at once.
#pragma once

#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/dispatch.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace movement {

// The widest of 16, 8, 4, 2 and 1 bytes that divides every number of bytes in `all` (the bits of all numbers, joined by OR).
constexpr std::size_t common_width(std::uint64_t all) {
  std::size_t width = 16;
  while (width > 1 && all % width != 0) width /= 2;
  return width;
}
inline std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// A dense tensor of i32 or i64 indices.
struct Indices {
  const void* data = nullptr;
  bool wide = false;

  TAPEDECK_DEVICE std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};
inline Indices indices_of(const View& view) { return {view.data, view.dtype == DType::i64}; }

// The place that an index names among n places; a negative index counts from the end. -1 for an index out of range.
TAPEDECK_DEVICE std::int64_t place_of(std::int64_t index, std::int64_t n) {
  const std::int64_t at = index < 0 ? index + n : index;
  return at >= 0 && at < n ? at : -1;
}

inline std::int64_t product(const View& v, int begin, int end) {
  std::int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= v.sizes[d];
  return n;
}

inline std::int64_t width_of(const View& v) { return static_cast<std::int64_t>(dtype_size(v.dtype)); }

// Copies all elements. REQUIRES: equal sizes and equal types; any strides; `to` does not overlap `from`. A dense copy moves 16
// bytes at a time; a transposed one goes through tiles in shared memory, so that both sides are read and written in lines.
void copy_view(const KernelCall& call, const View& from, const View& to);

// Writes zeros.
void clear_bytes(const KernelCall& call, void* to, std::int64_t bytes);

// The window of `view` that begins at `start` along `axis` and has `size` elements there.
inline View window(View view, int axis, std::int64_t start, std::int64_t size) {
  if (view.data) view.data = view.as<char>() + start * view.strides[axis] * width_of(view);
  view.sizes[axis] = size;
  return view;
}

// True if an operand already lies at its place in the result, because the kernel that made it wrote it there.
inline bool lies_there(const View& part, const View& place) {
  if (part.data != place.data) return false;
  for (int d = 0; d < part.rank; ++d)
    if (part.sizes[d] > 1 && part.strides[d] != place.strides[d]) return false;
  return true;
}

}  // namespace movement
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
