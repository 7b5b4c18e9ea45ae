#include <tapedeck/engine/ir/type.h>

#include <tapedeck/engine/ir/error.h>

#include <algorithm>

namespace tapedeck {

Shape::Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank))
    throw TypeError("a shape has at most " + std::to_string(kMaxRank) + " dimensions, not " + std::to_string(dims.size()));
  for (std::int64_t size : dims) {
    if (size < 0) throw TypeError("a dimension cannot have the size " + std::to_string(size));
    sizes[rank++] = size;
  }
}

int Shape::place_from_end(int i) const {
  if (i < 0 && i + rank >= 0) return i + rank;
  throw TypeError("the shape " + to_string(*this) + " has no dimension " + std::to_string(i));
}

// A zero size counts as 1 here, although it makes the true product zero. numel() and dense_strides() multiply the sizes one
// after the other, and they must not overflow before they reach the zero.
std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> sizes) {
  std::int64_t bytes = static_cast<std::int64_t>(dtype_size(dtype));
  bool empty = false;
  for (std::int64_t size : sizes) {
    if (size < 0) return -1;
    empty |= size == 0;
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    if (bytes > kMaxTypeBytes / factor) return -1;
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

bool fits_dtype(double value, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return value > -256 && value < 256;
    case DType::i32:
      return value > -0x1p31 - 1 && value < 0x1p31;
    case DType::i64:
      return value >= -0x1p63 && value < 0x1p63;
    default:
      return true;
  }
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text += ']';
}

std::string to_string(const Type& type) { return dtype_name(type.dtype) + to_string(type.shape); }

void dense_strides(const Shape& shape, std::int64_t* strides) {
  std::int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

bool broadcast_shapes(const Shape& a, const Shape& b, Shape* out) {
  Shape result;
  result.rank = std::max(a.rank, b.rank);
  for (int i = 0; i < result.rank; ++i) {  // i counts dimensions from the right, where the shapes are aligned
    const std::int64_t x = i < a.rank ? a[a.rank - 1 - i] : 1;
    const std::int64_t y = i < b.rank ? b[b.rank - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    result[result.rank - 1 - i] = x == 1 ? y : x;
  }
  *out = result;
  return true;
}

DType promote(DType a, DType b) {
  if ((a == DType::f16 && b == DType::bf16) || (a == DType::bf16 && b == DType::f16)) return DType::f32;
  constexpr int order[kDTypeCount] = {/*f32*/ 6, /*f64*/ 7, /*f16*/ 4, /*bf16*/ 5,
                                      /*i32*/ 2, /*i64*/ 3, /*u8*/ 1,  /*bool*/ 0};
  return order[static_cast<int>(a)] >= order[static_cast<int>(b)] ? a : b;
}

}  // namespace tapedeck
