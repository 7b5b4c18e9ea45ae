// Rules of type inference that several ops share. Only op blocks call them, also those of a library that is loaded later. A
// rule that only one family of ops uses stands in that family's .cpp.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

void infer_same(Infer& f);        // output 0 has the type of the only input
void infer_float(Infer& f);       // the same, for floating types only
void infer_broadcast(Infer& f);   // all inputs have one dtype; output 0 has it too, and the broadcast shape
void infer_like_first(Infer& f);  // all inputs have the type of input 0, and so does output 0
void infer_require_float(const Infer& f, const Type& t);
bool valid_axis(std::int64_t axis, int rank);

// The sum of two sizes, which are not negative. Calls f.fail if no type can have such a size.
std::int64_t infer_sum(const Infer& f, std::int64_t a, std::int64_t b);

// The shape that inputs[first], inputs[first + 1], ... broadcast to. Calls f.fail if they do not fit.
Shape infer_broadcast_shape(const Infer& f, std::size_t first = 0);

Cost cost_like_copy(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

}  // namespace TAPEDECK_API
