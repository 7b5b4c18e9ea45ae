// Where an author's own gradient (custom_gradient) stood on the tape.
#if !defined(TAPEDECK_ENGINE_OPS_OWN_GRADIENT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_OWN_GRADIENT_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

// A captured graph holds what the author's forward function did, and not his gradient function, which is C++. This stands on
// its results, so that gradient(graph) says so instead of differentiating the forward function; a captured step whose backward
// ran has the gradient in its nodes and is not touched by it. Passes leave it where it is. Operands: the result, then what the
// author's function was given.
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
