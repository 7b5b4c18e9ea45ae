// Checks and conversion of axes for the .cpp files of op families. Authors may give negative axes, which count from the end,
// or no axes, which means all. Attributes hold axes in ascending order, counted from 0.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

// Both functions convert the author's axes to the form of attributes. They throw TypeError if x is undefined. An axis outside
// of x is passed on; inference refuses it.
Ints normal_axes(const char* op, const Arg& x, const Ints& axes);
std::int64_t normal_axis(const char* op, const Arg& x, std::int64_t axis);

// The shape of input 0 after a reduction over the axes. Calls f.fail if an axis is wrong.
Shape infer_reduced_shape(const Infer& f, const Ints& axes, bool keepdims);

// Calls f.fail unless the axis exists in input 0.
void infer_require_axis(const Infer& f, std::int64_t axis);

}  // namespace tapedeck
