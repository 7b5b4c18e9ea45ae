#include <tapedeck/engine/ir/strides.h>

namespace tapedeck {

namespace {

// Whether dimensions `first`, first + 1, ... are dense. If so, *elements is the number of elements that they span.
bool is_dense_from(int first, const Shape& shape, const std::int64_t* strides, std::int64_t* elements) {
  *elements = 1;
  for (int i = shape.rank - 1; i >= first; --i) {
    if (shape[i] != 1 && strides[i] != *elements) return false;
    *elements *= shape[i];
  }
  return true;
}

// Whether the last two dimensions are row-major or column-major without overlap. The leading dimensions may have any strides.
bool is_matrix(const Shape& shape, const std::int64_t* strides) {
  if (shape.rank < 2) return false;
  const std::int64_t rows = shape[shape.rank - 2], cols = shape[shape.rank - 1];
  const std::int64_t down = strides[shape.rank - 2], right = strides[shape.rank - 1];
  const bool row_major = (cols == 1 || right == 1) && (rows == 1 || down >= cols);
  const bool column_major = (rows == 1 || down == 1) && (cols == 1 || right >= rows);
  return row_major || column_major;
}

bool has_bit(std::uint32_t bits, int i) { return i < 32 && (bits >> i & 1) != 0; }

}  // namespace

bool is_dense(const Shape& shape, const std::int64_t* strides) {
  std::int64_t elements = 0;
  return shape.numel() == 0 || is_dense_from(0, shape, strides, &elements);
}

bool takes_strides(const Op& op, int input, const Shape& shape, const std::int64_t* strides) {
  if (op.is(kElementwise) || op.is(kAnyStrides) || op.is(kView) || is_dense(shape, strides)) return true;
  if (op.is(kMatrixStrides) && is_matrix(shape, strides)) return true;
  std::int64_t image = 0;
  return has_bit(op.batch_strides.inputs, input) && is_dense_from(1, shape, strides, &image);
}

bool writes_strides(const Op& op, int output, const Shape& shape, const std::int64_t* strides) {
  if (op.is(kElementwise) || op.part || is_dense(shape, strides)) return true;
  std::int64_t image = 0;
  return has_bit(op.batch_strides.outputs, output) && is_dense_from(1, shape, strides, &image) && strides[0] >= image;
}

}  // namespace tapedeck
