// Shapes and types of tensors. Both have inline storage and never allocate.
#pragma once

#include <tapedeck/kernels/dtype.h>
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tapedeck TAPEDECK_API {

// The sizes of up to kMaxRank dimensions. A size may be zero.
struct Shape {
  std::int32_t rank = 0;
  std::int64_t sizes[kMaxRank];

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);     // TypeError if there are too many or a size is negative
  explicit Shape(std::span<const std::int64_t> dims);  // throws the same TypeError

  // A negative dimension counts from the end, as in Tensor::size(). TypeError if the shape has no such dimension.
  std::int64_t operator[](int i) const { return sizes[place(i)]; }
  std::int64_t& operator[](int i) { return sizes[place(i)]; }
  const std::int64_t* begin() const { return sizes; }
  const std::int64_t* end() const { return sizes + rank; }
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }
  bool operator==(const Shape& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (sizes[i] != o.sizes[i]) return false;
    return true;
  }
  bool operator!=(const Shape& o) const { return !(*this == o); }

 private:
  int place(int i) const {
    if (static_cast<unsigned>(i) < static_cast<unsigned>(rank)) return i;
    return place_from_end(i);
  }
  int place_from_end(int i) const;
};

// A dtype and a shape. Every Type has numel() * dtype_size <= kMaxTypeBytes. Code that makes a Type from outside data (the
// parser, a file reader, a tensor factory) must call checked_bytes first. So sizes can be multiplied, and the byte counts of
// a whole graph can be added, without overflow.
struct Type {
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t numel() const { return shape.numel(); }
  std::int64_t bytes() const { return shape.numel() * static_cast<std::int64_t>(dtype_size(dtype)); }
  bool operator==(const Type& o) const { return dtype == o.dtype && shape == o.shape; }
  bool operator!=(const Type& o) const { return !(*this == o); }
};

inline constexpr std::int64_t kMaxTypeBytes = std::int64_t{1} << 46;  // 64 TiB

// The number of bytes, or -1 if a size is negative or the number exceeds kMaxTypeBytes.
std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> sizes);

// Whether an element of this dtype can hold the number. Floating dtypes and bool hold any. For an integer, a fraction is
// rounded towards zero first, and a negative number of u8 wraps, as in PyTorch.
bool fits_dtype(double value, DType dtype);

std::string to_string(const Shape& shape);  // "[64,784]"
std::string to_string(const Type& type);    // "f32[64,784]"

// Computes the row-major strides, in elements, of a dense tensor of this shape.
void dense_strides(const Shape& shape, std::int64_t* strides);

// Computes the broadcast shape by NumPy's rules. Returns false if the shapes do not fit.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape* out);

// The dtype that operands of two dtypes are promoted to: the later one in the order bool < u8 < i32 < i64 < f16 < bf16 < f32
// < f64. The exception is f16 with bf16, which gives f32.
DType promote(DType a, DType b);

}  // namespace TAPEDECK_API
