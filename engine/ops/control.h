// Ops of control flow: loops and branches with regions. A region is a graph of its own; values from outside enter it as
// operands.
//
// The region of a loop is (i: i64[], carried..., slices..., captured...) -> (carried..., stacked...). `i` is the number of
// the pass; a reversed scan counts from the last pass down to 0. The condition of `while` has the same inputs and returns
// bool[]. The inputs of a region of `cond` are all operands of the node but the first.
//
// Authors write loops and branches with the functions of control/loops.h.
#if !defined(TAPEDECK_ENGINE_OPS_CONTROL_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CONTROL_H

#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/control.h>

namespace tapedeck TAPEDECK_API {

OP_CONTROL(while_loop, "while",
           {
               .doc = "runs the second region as long as the first gives true; operands: carried, scanned, captured; results: "
                      "the number of passes (i64[]), "
                      "carried values after the last pass, stacked results (zeros after the last pass)",
               .max_inputs = -1,
               .max_outputs = -1,
               .n_regions = 2,
               .attrs = &attr_schema<LoopAttrs>(),
               .infer = infer_while,
               .vjp = vjp_while,
               .run = run_while,
           })

OP_CONTROL(scan, "scan",
           {
               .doc = "runs the region once for every slice of the scanned operands; operands: carried, scanned, captured; "
                      "results: carried values after "
                      "the last pass, stacked results",
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .n_regions = 1,
               .attrs = &attr_schema<LoopAttrs>(),
               .infer = infer_scan,
               .vjp = vjp_scan,
               .run = run_scan,
           })

OP_CONTROL(cond, "cond",
           {
               .doc = "runs the first region if operand 0 (bool[]) is true, else the second, on the other operands",
               .min_inputs = 1,
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .n_regions = 2,
               .infer = infer_cond,
               .vjp = vjp_cond,
               .run = run_cond,
           })

// The gradient of a loop that keeps no residuals. ("d x" is the gradient of x.)
//   operands       trips (i64[]), the operands of the loop, the gradients of its floating carried results, the first terms of
//                  the gradients of its captured operands, the gradients of its floating stacked results
//   first region   one pass of the loop
//   second region  one pass and its gradient: (i, carried, slices, captured, d carried, d captured, d stacked)
//                  -> (d carried, d captured, d slices)
//   results        the gradients of the floating carried operands, and of the captured and scanned operands that `needs` marks
// The loop runs again and keeps carried values as `checkpoint` says, on a tape whose size is known before. Then the gradient
// walks back over the passes.
OP_CONTROL(loop_grad, "loop_grad",
           {
               .doc = "gradient of a loop, by running it again; see ops/control.h",
               .min_inputs = 1,
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .n_regions = 2,
               .attrs = &attr_schema<LoopGradAttrs>(),
               .infer = infer_loop_grad,
               .no_gradient = "a gradient that runs its loop again has no further gradient; a scan without checkpoints has",
               .run = run_loop_grad,
           })

}  // namespace TAPEDECK_API

#endif
