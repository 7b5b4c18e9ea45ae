// Checks of operands that several families share, for their .cpp files. Errors name the function that the author called, or the
// op.
#pragma once

#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/infer.h>

#include <string>

namespace tapedeck {

// The operand of a call that stands for one of the author: its place is that of the author's call.
inline Arg at(const Tensor& t, Site site) { return Arg(t, site.file, site.line); }

[[noreturn]] inline void refuse(const char* op, const Arg& x, const std::string& why) {
  throw TypeError(error_text(op, why, x.site()));
}

inline void require_defined(const char* op, const Arg& x) {
  if (!x.tensor().defined()) refuse(op, x, "the operand is undefined");
}

// The shape of x, which is defined.
inline const Shape& checked_shape(const char* op, const Arg& x) {
  require_defined(op, x);
  return x.tensor().shape();
}

// The inference of ops whose operands have one floating type and broadcast.
inline void infer_broadcast_float(Infer& f) {
  for (const Type& t : f.inputs) infer_require_float(f, t);
  infer_broadcast(f);
}

}  // namespace tapedeck
