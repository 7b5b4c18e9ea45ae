// Reductions over listed axes. The order of the sums depends on the shape only.
#if !defined(TAPEDECK_ENGINE_OPS_REDUCE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_REDUCE_H

#include <tapedeck/engine/ops/op_block.h>

#include <concepts>
#include <type_traits>

namespace tapedeck TAPEDECK_API {

OP(sum, {
            .doc = "sum over axes",
            .traits = kAnyStrides,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<ReduceAttrs>(),
            .infer = infer_reduce,
            .vjp = [](Vjp& b) { b.dx(0, expand_reduced(b.dy(), b.x(0).shape(), b.attributes<ReduceAttrs>())); },
            .examples = {"sum(f32[3,5]) {axes=[0,1]}", "sum(f32[3,5,2]) {axes=[1], keepdims=true}", "sum(f32[3,0]) {axes=[1]}"},
        })

OP(mean, {
             .doc = "mean over axes",
             .traits = kAnyStrides,
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<ReduceAttrs>(),
             .infer =
                 [](Infer& f) {
                   infer_require_float(f, f.inputs[0]);
                   infer_reduce(f);
                 },
             .vjp =
                 [](Vjp& b) {
                   const double count =
                       static_cast<double>(b.x(0).numel()) / static_cast<double>(std::max<std::int64_t>(b.y().numel(), 1));
                   b.dx(0, expand_reduced(mul(b.dy(), 1.0 / count), b.x(0).shape(), b.attributes<ReduceAttrs>()));
                 },
             .examples = {"mean(f32[3,5]) {axes=[0,1]}", "mean(f32[3,5,2]) {axes=[0,2]}"},
         })

OP(max, {
            .doc = "largest element over axes, NaN if any is; equal maxima share the gradient",
            .traits = kAnyStrides,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<ReduceAttrs>(),
            .infer = infer_reduce,
            .vjp = vjp_extreme,
            .examples = {"max(f32[3,5]) {axes=[1]}", "max(f32[3,5]) {axes=[0,1], keepdims=true}"},
        })

OP(min, {
            .doc = "smallest element over axes, NaN if any is; equal minima share the gradient",
            .traits = kAnyStrides,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<ReduceAttrs>(),
            .infer = infer_reduce,
            .vjp = vjp_extreme,
            .examples = {"min(f32[3,5]) {axes=[1]}"},
        })

OP(argmax, {
               .doc = "index of the largest element along an axis, the lowest of equals; i64",
               .traits = kAnyStrides | kNoGradient,
               .min_inputs = 1,
               .max_inputs = 1,
               .attrs = &attr_schema<AxisAttrs>(),
               .infer =
                   [](Infer& f) {
                     const Type& x = f.inputs[0];
                     const std::int64_t axis = f.attributes<AxisAttrs>().axis;
                     if (!valid_axis(axis, x.shape.rank))
                       f.fail("axis " + std::to_string(axis) + " is outside " + to_string(x));
                     if (x.shape[static_cast<int>(axis)] == 0)
                       f.fail("no largest element along an empty axis of " + to_string(x));
                     Type out{DType::i64, {}};
                     for (int i = 0; i < x.shape.rank; ++i)
                       if (i != axis) out.shape.sizes[out.shape.rank++] = x.shape[i];
                     f.outputs.assign(1, out);
                   },
               .no_gradient = "an index does not vary smoothly",
               .examples = {"argmax(f32[3,5]) {axis=1}"},
           })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Axes may be negative. An empty list means all axes.
Tensor sum(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor mean(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor max(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor min(const Arg& x, const Ints& axes = {}, bool keepdims = false);
Tensor argmax(const Arg& x, std::int64_t axis = -1);
// The same over one axis: sum(x, 0), sum(x, -1, true).
#define TAPEDECK_OVER_ONE_AXIS(f)                                                                  \
  template <std::integral Axis>                                                                    \
  requires(!std::is_same_v<Axis, bool>) Tensor f(const Arg& x, Axis axis, bool keepdims = false) { \
    return f(x, Ints{static_cast<std::int64_t>(axis)}, keepdims);                                  \
  }
TAPEDECK_OVER_ONE_AXIS(sum)
TAPEDECK_OVER_ONE_AXIS(mean)
TAPEDECK_OVER_ONE_AXIS(max)
TAPEDECK_OVER_ONE_AXIS(min)
#undef TAPEDECK_OVER_ONE_AXIS
// Broadcasts the gradient dy of a reduction back over the reduced axes.
Tensor expand_reduced(const Tensor& dy, const Shape& shape, const ReduceAttrs& attrs);
#endif

}  // namespace TAPEDECK_API
#endif
