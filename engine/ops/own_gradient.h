// An op that marks the results of custom_gradient() in a captured graph.
#if !defined(TAPEDECK_ENGINE_OPS_OWN_GRADIENT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_OWN_GRADIENT_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

// A captured graph has the ops of the author's forward function, but not the author's gradient function, which is C++ code.
// This op stands on the results of the forward function. gradient(graph) then reports that the gradient is missing, and does
// not differentiate the forward function. A captured step whose backward already ran has its gradient as nodes, and this op
// changes nothing there. Passes do not move or remove it. Operands: the result, then the operands of the author's function.
OP_WITHOUT_KERNEL(own_gradient, {
                                    .doc = "operand 0; its gradient is a function of the author's that no graph holds",
                                    .traits = kView | kAnyStrides | kNativeHalf,
                                    .min_inputs = 1,
                                    .max_inputs = -1,
                                    .infer = infer_same,
                                    .no_gradient = "the author's gradient function is not part of the graph",
                                    .view = view_as_is,
                                    .examples = {"own_gradient(f32[3,4], f32[2])", "own_gradient(i64[])"},
                                })

}  // namespace TAPEDECK_API

#endif
