// Which strides an op's kernel reads and writes, by operand and result: eager dispatch, plans and their executor go by these
// alike.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

// Row-major without gaps; sizes of one may have any stride, and so may what has no elements.
bool is_dense(const Shape& shape, const std::int64_t* strides);

// Whether the kernel reads operand `input`, of this shape, in these strides. View ops read any: what their rule does not
// express is copied.
bool takes_strides(const Op& op, int input, const Shape& shape, const std::int64_t* strides);

// Whether the kernel writes result `output`, of this shape, in these strides, and nothing between its elements.
bool writes_strides(const Op& op, int output, const Shape& shape, const std::int64_t* strides);

}  // namespace tapedeck
