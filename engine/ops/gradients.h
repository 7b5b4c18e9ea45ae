// Tools for gradients: their common norm, a test whether all are finite, and the scale of the loss that keeps them finite.
#if !defined(TAPEDECK_ENGINE_OPS_GRADIENTS_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_GRADIENTS_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/optimizer.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

OP(all_finite, {
                   .doc = "whether every element of every operand is finite; floating operands of any shapes -> bool[]",
                   .traits = kCheap | kNoGradient | kNativeHalf,
                   .min_inputs = 1,
                   .max_inputs = -1,
                   .infer = infer_all_finite,
                   .no_gradient = "a truth value has none",
                   .examples = {"all_finite(f32[3,5])", "all_finite(f32[3,5], f32[], f32[0])"},
               })

OP(global_norm, {
                    .doc = "square root of the sum of all squares of all operands; floating operands of any shapes -> f32[], "
                           "or f64[] if one is f64",
                    .traits = kCheap | kFullPrecision,
                    .min_inputs = 1,
                    .max_inputs = -1,
                    .infer = infer_global_norm,
                    .vjp =
                        [](Vjp& b) {
                          const Tensor each = where(greater(b.y(), 0), div(b.dy(), b.y()), 0);
                          for (int i = 0; i < b.n_inputs(); ++i)
                            if (b.needs(i)) b.dx(i, cast(mul(b.x(i), each), b.x(i).dtype()));
                        },
                    .examples = {"global_norm(f32[3,5])", "global_norm(f32[3,5], f32[], f32[7], f32[0])"},
                })

OP(loss_scale_next, {
                        .doc = "the next loss scale and number of finite steps in a row; scale of a floating type [], steps "
                               "i64[], whether this step was finite bool[]",
                        .traits = kNoGradient,
                        .inplace = {{0, 0}, {1, 1}},
                        .min_inputs = 3,
                        .max_inputs = 3,
                        .min_outputs = 2,
                        .max_outputs = 2,
                        .attrs = &attr_schema<LossScaleAttrs>(),
                        .infer = infer_loss_scale,
                        .no_gradient = "an update of state",
                        .examples = {"loss_scale_next(f32[] in (1,9), i64[] in (0,4), bool[]) {interval=3}"},
                    })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor all_finite(const std::vector<Tensor>& tensors, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor global_norm(const std::vector<Tensor>& tensors, Site site = {__builtin_FILE(), __builtin_LINE()});
#endif

}  // namespace TAPEDECK_API
#endif
