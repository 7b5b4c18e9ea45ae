// Softmax and one-hot labels.
#if !defined(TAPEDECK_ENGINE_OPS_SOFTMAX_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_SOFTMAX_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(softmax, {
                .doc = "exp(x) / sum exp(x) along an axis",
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<AxisAttrs>(),
                .infer = infer_axis_float,
                .vjp = [](Vjp& b) { b.dx(0, softmax_grad(b.y(), b.dy(), b.attributes<AxisAttrs>())); },
                .examples = {"softmax(f32[3,5]) {axis=1}", "softmax(f32[3,5,2]) {axis=0}"},
            })

OP(softmax_grad, {
                     .doc = "gradient of softmax: y, dy -> y (dy - sum(y dy))",
                     .inplace = {{0, 1}},
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .attrs = &attr_schema<AxisAttrs>(),
                     .infer = infer_axis_like_first,
                     .vjp =
                         [](Vjp& b) {
                           const auto& a = b.attributes<AxisAttrs>();
                           const Tensor total = sum(mul(b.x(0), b.x(1)), {a.axis}, true);
                           if (b.needs(0))
                             b.dx(0,
                                  sub(mul(b.dy(), sub(b.x(1), total)), mul(b.x(1), sum(mul(b.dy(), b.x(0)), {a.axis}, true))));
                           if (b.needs(1)) b.dx(1, softmax_grad(b.x(0), b.dy(), a));
                         },
                     .examples = {"softmax_grad(f32[3,5] in (0,1), f32[3,5]) {axis=1}"},
                 })

OP(log_softmax, {
                    .doc = "x - log sum exp(x) along an axis",
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .attrs = &attr_schema<AxisAttrs>(),
                    .infer = infer_axis_float,
                    .vjp = [](Vjp& b) { b.dx(0, log_softmax_grad(b.y(), b.dy(), b.attributes<AxisAttrs>())); },
                    .examples = {"log_softmax(f32[3,5]) {axis=1}", "log_softmax(f32[3,5,2]) {axis=1}"},
                })

OP(log_softmax_grad, {
                         .doc = "gradient of log_softmax: y, dy -> dy - exp(y) sum(dy)",
                         .inplace = {{0, 1}},
                         .min_inputs = 2,
                         .max_inputs = 2,
                         .attrs = &attr_schema<AxisAttrs>(),
                         .infer = infer_axis_like_first,
                         .vjp =
                             [](Vjp& b) {
                               const auto& a = b.attributes<AxisAttrs>();
                               const Tensor p = exp(b.x(0));
                               if (b.needs(0)) b.dx(0, neg(mul(mul(b.dy(), p), sum(b.x(1), {a.axis}, true))));
                               if (b.needs(1)) b.dx(1, sub(b.dy(), sum(mul(b.dy(), p), {a.axis}, true)));
                             },
                         .examples = {"log_softmax_grad(f32[3,5], f32[3,5]) {axis=1}"},
                     })

OP(one_hot, {
                .doc = "a new last dimension with 1 at the label and 0 elsewhere",
                .traits = kNoGradient,
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<OneHotAttrs>(),
                .infer = infer_one_hot,
                .no_gradient = "labels are integers",
                .examples = {"one_hot(i32[4] in (0,3)) {classes=3, dtype=f32}"},
            })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor softmax(const Arg& x, std::int64_t axis = -1);
Tensor log_softmax(const Arg& x, std::int64_t axis = -1);
inline Tensor softmax_grad(const Arg& y, const Tensor& dy, const AxisAttrs& attrs) {
  return apply(ops::softmax_grad, {&y.tensor(), &dy}, &attrs, y.site());
}
inline Tensor log_softmax_grad(const Arg& y, const Tensor& dy, const AxisAttrs& attrs) {
  return apply(ops::log_softmax_grad, {&y.tensor(), &dy}, &attrs, y.site());
}
Tensor one_hot(const Arg& labels, std::int64_t classes, DType dtype = DType::f32);
#endif

}  // namespace TAPEDECK_API
#endif
