// Control flow: loops and branches as nodes with regions (graphs of their own; outer values enter as operands).
//
// Region of a loop: (i: i64[], carried..., slices..., captured...) -> (carried..., stacked...), where i counts passes (of a reversed scan
// from the last to 0). The condition of `while` takes the same and gives bool[]. A region of `cond` takes the operands after the first.
//
// Eager code (while_loop, cond, scan below) runs as ordinary loops and branches; in a capture, and on abstract tensors, it becomes these
// nodes. Both give the same bits, gradients included.
#if !defined(TAPEDECK_ENGINE_OPS_CONTROL_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CONTROL_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/control.h>

#include <functional>

namespace tapedeck TAPEDECK_API {

OP_CONTROL(while_loop, "while", {
  .doc = "runs the second region as long as the first gives true; operands: carried, scanned, captured; results: the number of passes (i64[]), "
         "carried values after the last pass, stacked results (zeros after the last pass)",
  .max_inputs = -1, .max_outputs = -1,
  .n_regions = 2,
  .attrs = &attr_schema<LoopAttrs>(),
  .infer = infer_while,
  .vjp = vjp_while,
  .run = run_while,
})

OP_CONTROL(scan, "scan", {
  .doc = "runs the region once for every slice of the scanned operands; operands: carried, scanned, captured; results: carried values after "
         "the last pass, stacked results",
  .max_inputs = -1,
  .min_outputs = 0, .max_outputs = -1,
  .n_regions = 1,
  .attrs = &attr_schema<LoopAttrs>(),
  .infer = infer_scan,
  .vjp = vjp_scan,
  .run = run_scan,
})

OP_CONTROL(cond, "cond", {
  .doc = "runs the first region if operand 0 (bool[]) is true, else the second, on the other operands",
  .min_inputs = 1, .max_inputs = -1,
  .min_outputs = 0, .max_outputs = -1,
  .n_regions = 2,
  .infer = infer_cond,
  .vjp = vjp_cond,
  .run = run_cond,
})

// Operands: trips (i64[]), the loop's own operands, gradients of its floating carried results, what the gradients of captured operands
// begin with, gradients of its floating stacked results. Regions: one pass of the loop; one pass and its gradient:
// (i, carried, slices, captured, d carried, d captured, d stacked) -> (d carried, d captured, d slices). The loop runs again, keeping carried
// values as `checkpoint` says on a tape of exactly that size, and is walked back from them.
// Results: gradients of the floating carried operands, of the captured and of the scanned ones that `needs` asks for.
OP_CONTROL(loop_grad, "loop_grad", {
  .doc = "gradient of a loop, by running it again; see ops/control.h",
  .min_inputs = 1, .max_inputs = -1,
  .min_outputs = 0, .max_outputs = -1,
  .n_regions = 2,
  .attrs = &attr_schema<LoopGradAttrs>(),
  .infer = infer_loop_grad,
  .no_gradient = "a gradient that runs its loop again has no further gradient; a scan without checkpoints has",
  .run = run_loop_grad,
})

#ifndef TAPEDECK_DEFINE_OPS
// ---- what authors call ----

using Tensors = std::vector<Tensor>;

struct LoopOptions {
  std::int64_t max_trips = -1;      // while_loop: stop here at the latest; needed for stacked results. scan without xs: how many passes
  // What backward keeps of the carried values: 0 = those of every pass, n = of every n-th, kCheckpointSqrt, kCheckpointLog. What is not
  // kept is computed again.
  std::int64_t checkpoint_every = 0;
  std::int64_t axis = 0;            // scan, map: the axis along which xs are sliced and results stacked
  bool reverse = false;             // scan: the last slice first
};

struct LoopResult {
  Tensors carried;                  // after the last pass
  Tensors stacked;                  // what the body returned beyond the carried values, one slice per pass
  Tensor trips;                     // i64[]: how many passes
};

// carried = body(carried) while condition(carried). Both functions are given `carried` and, after it, `captured`; the body returns as
// many tensors as are carried, of the same types, and then any to be stacked (zeros in passes that did not come). Other tensors that the
// functions read are captured by themselves. In a capture each function is called once, on tensors without data: it must depend on
// nothing else (item() is an error there), and must not write tensors from outside in place.
// TypeError: a carried value changes its type; the condition gives something else than bool[]; results are stacked without max_trips.
LoopResult while_loop(const std::function<Tensor(const Tensors&)>& condition, const std::function<Tensors(const Tensors&)>& body,
                      const Tensors& carried, const Tensors& captured = {}, const LoopOptions& options = {},
                      Site site = {__builtin_FILE(), __builtin_LINE()});

// then_branch(operands) if `pred` holds, else else_branch(operands): both must return the same types.
Tensors cond(const Tensor& pred, const std::function<Tensors(const Tensors&)>& then_branch,
             const std::function<Tensors(const Tensors&)>& else_branch, const Tensors& operands = {},
             Site site = {__builtin_FILE(), __builtin_LINE()});

// carried, ys = body(carried, slices of xs), for every slice along an axis. The body is given `carried`, the slices, and `captured`.
LoopResult scan(const std::function<Tensors(const Tensors&)>& body, const Tensors& carried, const Tensors& xs,
                const Tensors& captured = {}, const LoopOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// ys = fn(slices of xs), stacked.
Tensors map(const std::function<Tensors(const Tensors&)>& fn, const Tensors& xs, const LoopOptions& options = {},
            Site site = {__builtin_FILE(), __builtin_LINE()});
#endif

}  // namespace tapedeck

#endif
