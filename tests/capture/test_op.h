// An op that a test defines: one operand, a result of the same type, and a kernel of the test.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck::test {

// Registers the op at the first call; later calls return the same op.
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
