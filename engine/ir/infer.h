// Type inference that many ops share. Used inside op blocks only; what one family needs stands in its .cpp.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

void infer_same(Infer& f);        // output 0 = the one input's type
void infer_float(Infer& f);       // likewise, floating types only
void infer_broadcast(Infer& f);   // all inputs of one dtype, broadcast
void infer_like_first(Infer& f);  // all inputs have input 0's type, so has the output
void infer_require_float(const Infer& f, const Type& t);
bool valid_axis(std::int64_t axis, int rank);

// Shape of broadcasting inputs[first..], or f.fail.
Shape infer_broadcast_shape(const Infer& f, std::size_t first = 0);

Cost cost_like_copy(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

}  // namespace tapedeck
