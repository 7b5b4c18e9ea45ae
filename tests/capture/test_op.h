// An op of a test's own: one operand, a result of its type, and a kernel that the test writes.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck::test {

// Registered at the first call, the same op at every later one.
inline const Op& unary_op(const char* name, Kernel kernel) {
  if (const Op* op = find_op(name)) return *op;
  Op op;
  op.name = name;
  op.min_inputs = op.max_inputs = 1;
  op.infer = [](Infer& f) { f.outputs.assign(1, f.inputs[0]); };
  for (Kernel& k : op.kernels) k = kernel;
  return register_op(op);
}

}  // namespace tapedeck::test
