// Axes as authors give them (negative ones count from the end, none means all) and as attributes keep them (ascending, from
// zero). For the .cpp files of op families.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

// Throws TypeError if x is undefined. An axis that does not exist is left for inference to refuse.
Ints normal_axes(const char* op, const Arg& x, const Ints& axes);
std::int64_t normal_axis(const char* op, const Arg& x, std::int64_t axis);

// The shape of a reduction of input 0, or f.fail.
Shape infer_reduced_shape(const Infer& f, const Ints& axes, bool keepdims);

// f.fail unless the axis exists in input 0.
void infer_require_axis(const Infer& f, std::int64_t axis);

}  // namespace tapedeck
