// Statistics over listed axes: products, variances, norms and counts. The order of the sums depends on the shape only.
#if !defined(TAPEDECK_ENGINE_OPS_STATISTICS_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_STATISTICS_H

#include <tapedeck/engine/ops/op_block.h>

#include <tapedeck/kernels/attrs/statistics.h>
#include <concepts>
#include <type_traits>

namespace tapedeck TAPEDECK_API {

OP(prod,
   {
       .doc = "product over axes; of none it is 1",
       .traits = kAnyStrides | kFullPrecision,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<ReduceAttrs>(),
       .infer =
           [](Infer& f) {
             if (f.inputs[0].dtype == DType::boolean) f.fail("needs numbers, got " + to_string(f.inputs[0]));
             infer_statistic(f, f.inputs[0].dtype, f.attributes<ReduceAttrs>().axes, f.attributes<ReduceAttrs>().keepdims);
           },
       .vjp = vjp_prod,
       .examples = {"prod(f32[3,5]) {axes=[0,1]}", "prod(f32[3,5,2]) {axes=[0,2], keepdims=true}",
                    "prod(f32[2,3,4,2]) {axes=[1]}", "prod(i32[3,5]) {axes=[1]}", "prod(f32[3,0]) {axes=[1]}", "prod(f32[])"},
   })

OP(any, {
            .doc = "whether any element over axes is other than zero; bool",
            .traits = kAnyStrides | kNoGradient,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<ReduceAttrs>(),
            .infer = infer_truth,
            .no_gradient = "bool result",
            .examples = {"any(bool[3,5]) {axes=[1]}", "any(f32[3,5]) {axes=[0,1], keepdims=true}",
                         "any(i64[3,2,5] in (0,2)) {axes=[0,2]}", "any(bool[3,0]) {axes=[1]}"},
        })

OP(all, {
            .doc = "whether every element over axes is other than zero; bool",
            .traits = kAnyStrides | kNoGradient,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<ReduceAttrs>(),
            .infer = infer_truth,
            .no_gradient = "bool result",
            .examples = {"all(bool[3,2]) {axes=[1]}", "all(f32[3,5]) {axes=[0,1], keepdims=true}",
                         "all(i64[3,2,5] in (0,9)) {axes=[0,2]}", "all(bool[3,0]) {axes=[1]}"},
        })

OP(count_nonzero, {
                      .doc = "number of elements over axes that are other than zero; i64",
                      .traits = kAnyStrides | kNoGradient,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .attrs = &attr_schema<ReduceAttrs>(),
                      .infer =
                          [](Infer& f) {
                            infer_statistic(f, DType::i64, f.attributes<ReduceAttrs>().axes,
                                            f.attributes<ReduceAttrs>().keepdims);
                          },
                      .no_gradient = "integer result",
                      .examples = {"count_nonzero(bool[3,5]) {axes=[1]}", "count_nonzero(i32[3,40] in (0,3)) {axes=[0]}",
                                   "count_nonzero(f32[3,5]) {axes=[0,1], keepdims=true}", "count_nonzero(u8[0,2]) {axes=[0]}"},
                  })

OP(var, {
            .doc = "variance over axes: squared distances from the mean, their sum divided by count - correction",
            .traits = kAnyStrides | kFullPrecision,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<VarAttrs>(),
            .infer = infer_variance,
            .vjp = [](Vjp& b) { b.dx(0, mul(vjp_centred(b), spread(b, mul(b.dy(), 2.0 / divisor(b))))); },
            .examples = {"var(f32[3,5]) {axes=[0,1]}", "var(f32[3,5,2]) {axes=[0,2], keepdims=true, correction=0.0}",
                         "var(f32[4,40]) {axes=[0]}", "var(f32[0,2]) {axes=[1]}"},
        })

OP(std, {
            .doc = "standard deviation over axes: the square root of var; no gradient flows where it is 0",
            .traits = kAnyStrides | kFullPrecision,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<VarAttrs>(),
            .infer = infer_variance,
            .vjp = [](Vjp& b) { b.dx(0, mul(vjp_centred(b), spread(b, mul(unless_zero(b.y(), b.dy()), 1.0 / divisor(b))))); },
            .examples = {"std(f32[3,5]) {axes=[0,1]}", "std(f32[3,5,2]) {axes=[0,2], keepdims=true, correction=0.0}",
                         "std(f32[5,40]) {axes=[0]}"},
        })

OP(logsumexp, {
                  .doc = "log(sum(exp(x))) over axes, safe against overflow; of no elements it is -inf",
                  .traits = kAnyStrides | kFullPrecision,
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .attrs = &attr_schema<ReduceAttrs>(),
                  .infer =
                      [](Infer& f) {
                        infer_require_float(f, f.inputs[0]);
                        infer_statistic(f, f.inputs[0].dtype, f.attributes<ReduceAttrs>().axes,
                                        f.attributes<ReduceAttrs>().keepdims);
                      },
                  .vjp = vjp_logsumexp,
                  .cost =
                      [](std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
                        Cost cost = cost_like_copy(inputs, outputs, attrs);
                        cost.flops = 15.0 * static_cast<double>(inputs[0].numel());
                        return cost;
                      },
                  .examples = {"logsumexp(f32[3,5]) {axes=[1]}", "logsumexp(f32[3,5,2]) {axes=[0,2], keepdims=true}",
                               "logsumexp(f32[4,40]) {axes=[0]}", "logsumexp(f32[])"},
              })

OP(norm, {
             .doc = "(sum |x|^p)^(1/p) over axes; inf: largest |x|, -inf: smallest, 0: how many are not zero; extremes share "
                    "the gradient",
             .traits = kAnyStrides | kFullPrecision,
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<NormAttrs>(),
             .infer = infer_norm,
             .vjp = vjp_norm,
             .examples = {"norm(f32[3,5]) {axes=[0,1]}", "norm(f32[3,5,2]) {axes=[0,2], p=1.0, keepdims=true}",
                          "norm(f32[3,5]) {axes=[1], p=3.0}", "norm(f32[3,5] in (0.5,2)) {axes=[0], p=0.5}",
                          "norm(f32[4,5]) {axes=[0], p=inf}", "norm(f32[4,40]) {axes=[0], p=-inf}",
                          "norm(f32[4,5]) {axes=[0], p=0.0}", "norm(f32[0]) {axes=[0]}"},
         })

OP(argmin, {
               .doc = "index of the smallest element along an axis, the lowest of equals; i64",
               .traits = kAnyStrides | kNoGradient,
               .min_inputs = 1,
               .max_inputs = 1,
               .attrs = &attr_schema<AxisAttrs>(),
               .infer = infer_argmin,
               .no_gradient = "integer result",
               .examples = {"argmin(f32[3,5]) {axis=1}", "argmin(i32[3,5,2]) {axis=0}", "argmin(f32[0,5]) {axis=1}"},
           })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Axes may be negative. An empty list means all axes. any and all return bool, and count_nonzero returns i64. The others keep
// the dtype.
Tensor prod(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor any(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor all(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor count_nonzero(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor var(const Arg& x, const Ints& axes = {}, bool keepdims = false, double correction = 1);
Tensor std(const Arg& x, const Ints& axes = {}, bool keepdims = false, double correction = 1);
Tensor logsumexp(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor norm(const Arg& x, double p = 2, const Ints& axes = {}, bool keepdims = false);
Tensor argmin(const Arg& x, std::int64_t axis = -1);
// The same over one axis: prod(x, 0), var(x, -1, true), norm(x, 2, 0).
#define TAPEDECK_OVER_ONE_AXIS(f)                                                                  \
  template <std::integral Axis>                                                                    \
  requires(!std::is_same_v<Axis, bool>) Tensor f(const Arg& x, Axis axis, bool keepdims = false) { \
    return f(x, Ints{static_cast<std::int64_t>(axis)}, keepdims);                                  \
  }
#define TAPEDECK_SPREAD_OVER_ONE_AXIS(f)                                                                                  \
  template <std::integral Axis>                                                                                           \
  requires(!std::is_same_v<Axis, bool>) Tensor f(const Arg& x, Axis axis, bool keepdims = false, double correction = 1) { \
    return f(x, Ints{static_cast<std::int64_t>(axis)}, keepdims, correction);                                             \
  }
TAPEDECK_OVER_ONE_AXIS(prod)
TAPEDECK_OVER_ONE_AXIS(any)
TAPEDECK_OVER_ONE_AXIS(all)
TAPEDECK_OVER_ONE_AXIS(count_nonzero)
TAPEDECK_OVER_ONE_AXIS(logsumexp)
TAPEDECK_SPREAD_OVER_ONE_AXIS(var)
TAPEDECK_SPREAD_OVER_ONE_AXIS(std)
#undef TAPEDECK_OVER_ONE_AXIS
#undef TAPEDECK_SPREAD_OVER_ONE_AXIS
template <std::integral Axis>
requires(!std::is_same_v<Axis, bool>) Tensor norm(const Arg& x, double p, Axis axis, bool keepdims = false) {
  return norm(x, p, Ints{static_cast<std::int64_t>(axis)}, keepdims);
}
#endif

}  // namespace TAPEDECK_API
#endif
