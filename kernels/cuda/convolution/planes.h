// Elements of planes [n,c,spatial] on the device: from the number of an element to its plane and coordinates, and from a plane
// to its offset where images lie apart.
#pragma once

#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cuda/elements.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace convolution {

// An element: its plane, its offset in the plane, and its coordinates {depth, height, width}.
struct Element {
  std::int64_t plane, at;
  int d, h, w;
};

// A division of 64 bits takes several times as long as one of 32 bits, which nearly always suffices.
TAPEDECK_DEVICE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  return a / b;
}

TAPEDECK_DEVICE Element element_of(std::int64_t i, std::int64_t plane_size, const int (&size)[3]) {
  const std::int64_t plane = quotient(i, plane_size), at = i - plane * plane_size;
  const std::int64_t row = quotient(at, size[2]), depth = quotient(row, size[1]);
  return {plane, at, static_cast<int>(depth), static_cast<int>(row - depth * size[1]), static_cast<int>(at - row * size[2])};
}

// One plane of an operand. Its elements are of type T, or, as Real, of f32, f16 or bf16.
template <class T>
struct Plane {
  void* data;
  DType dtype;
  std::int64_t first;

  TAPEDECK_DEVICE Value<T> operator[](std::int64_t at) const { return load<T>(data, dtype, first + at); }
  TAPEDECK_DEVICE void set(std::int64_t at, Value<T> x) const { store<T>(data, dtype, first + at, x); }
  TAPEDECK_DEVICE Plane from(std::int64_t at) const { return {data, dtype, first + at}; }
};

// The planes of one operand.
struct Planes {
  void* data;
  DType dtype;
  std::int64_t channels, plane_size, image_stride;

  template <class T>
  TAPEDECK_DEVICE Plane<T> plane(std::int64_t i) const {
    const std::int64_t image = quotient(i, channels);
    return {data, dtype, image * image_stride + (i - image * channels) * plane_size};
  }
};

inline Planes planes_of(const View& v) {
  Planes p{v.data, v.dtype, v.sizes[1], 1, cpu::image_stride(v)};
  for (int d = 2; d < v.rank; ++d) p.plane_size *= v.sizes[d];
  return p;
}

// The spatial sizes of a view, with ones in front.
inline void set_sizes(int (&sizes)[3], const View& v) {
  for (int d = 0; d < 3; ++d) sizes[d] = 1;
  for (int d = 2; d < v.rank; ++d) sizes[3 - v.rank + d] = static_cast<int>(v.sizes[d]);
}

}  // namespace convolution
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
