// Optimizer updates: pure in a graph, in place where the plan can.
#if !defined(TAPEDECK_ENGINE_OPS_OPTIMIZER_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_OPTIMIZER_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(sgd, {
  .doc = "w - lr (g + weight_decay w); w, g, lr",
  .traits = kCheap | kNoGradient,
  .inplace = {{0, 0}},
  .min_inputs = 3, .max_inputs = 3,
  .attrs = &attr_schema<SgdAttrs>(),
  .infer = [](Infer& f) { infer_optimizer(f, 2, 1); },
  .no_gradient = "training is not differentiated through its updates",
  .examples = {"sgd(f32[3,5], f32[3,5], f32[] in (0.01,0.1)) {weight_decay=0.1}"},
})

OP(sgd_momentum, {
  .doc = "v' = momentum v + g + weight_decay w, w' = w - lr v'; w, g, v, lr -> w', v'",
  .traits = kCheap | kNoGradient,
  .inplace = {{0, 0}, {1, 2}},
  .min_inputs = 4, .max_inputs = 4, .min_outputs = 2, .max_outputs = 2,
  .attrs = &attr_schema<SgdAttrs>(),
  .infer = [](Infer& f) { infer_optimizer(f, 3, 2); },
  .no_gradient = "training is not differentiated through its updates",
  .examples = {"sgd_momentum(f32[3,5], f32[3,5], f32[3,5], f32[] in (0.01,0.1)) {momentum=0.9}"},
})

OP(adamw, {
  .doc = "AdamW (Loshchilov and Hutter, 2019); w, g, m, v, step count, lr -> w', m', v'",
  .traits = kCheap | kNoGradient,
  .inplace = {{0, 0}, {1, 2}, {2, 3}},
  .min_inputs = 6, .max_inputs = 6, .min_outputs = 3, .max_outputs = 3,
  .attrs = &attr_schema<AdamAttrs>(),
  .infer = infer_adamw,
  .no_gradient = "training is not differentiated through its updates",
  .examples = {"adamw(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))"},
})

OP(count_next, {
  .doc = "a step counter plus one",
  .traits = kNoGradient,
  .inplace = {{0, 0}},
  .min_inputs = 1, .max_inputs = 1,
  .infer = infer_count_next,
  .no_gradient = "a counter is an integer",
  .examples = {"count_next(i64[] in (0,100))"},
})

#ifndef TAPEDECK_DEFINE_OPS
// ---- what authors call ----
#endif

}  // namespace tapedeck
#endif
