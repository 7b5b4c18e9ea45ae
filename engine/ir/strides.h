// Tells which strides an op's kernel reads and writes, for each operand and result. Eager dispatch, the planner and the
// executor all use these functions.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

// Whether the tensor is row-major without gaps. A dimension of size 1 may have any stride. A tensor without elements is
// always dense.
bool is_dense(const Shape& shape, const std::int64_t* strides);

// Whether the op reads operand `input` with this shape and these strides. View ops read any strides: if the view rule cannot
// express the view, the kernel copies.
bool takes_strides(const Op& op, int input, const Shape& shape, const std::int64_t* strides);

// Whether the kernel writes result `output` with this shape and these strides, and leaves the bytes between its elements
// alone.
bool writes_strides(const Op& op, int output, const Shape& shape, const std::int64_t* strides);

}  // namespace tapedeck
