// Views of tensors, and ops that move data without computing.
#if !defined(TAPEDECK_ENGINE_OPS_MOVEMENT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_MOVEMENT_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/movement.h>

#include <concepts>
#include <vector>

namespace tapedeck TAPEDECK_API {

// ---- views: share the operand's bytes if its strides allow it, else copy ----

OP_WITHOUT_KERNEL(reshape, {
                               .doc = "the same elements in row-major order under another shape",
                               .traits = kView | kAnyStrides | kNativeHalf,
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .attrs = &attr_schema<ShapeAttrs>(),
                               .infer = infer_reshape,
                               .vjp = [](Vjp& b) { b.dx(0, reshape(b.dy(), b.x(0).shape())); },
                               .view = view_reshape,
                               .unview = unview_reshape,
                               .examples = {"reshape(f32[3,4]) {shape=[2,6]}", "reshape(f32[6]) {shape=[2,1,3]}",
                                            "reshape(f32[1,1]) {shape=[]}", "reshape(f32[0,3]) {shape=[5,0]}",
                                            "reshape(i64[2,3,4]) {shape=[6,4]}"},
                           })

OP_WITHOUT_KERNEL(transpose,
                  {
                      .doc = "dimensions in another order",
                      .traits = kView | kAnyStrides | kNativeHalf,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .attrs = &attr_schema<PermuteAttrs>(),
                      .infer = infer_transpose,
                      .vjp = [](Vjp& b) { b.dx(0, transpose(b.dy(), inverse_order(b.attributes<PermuteAttrs>().axes))); },
                      .view = view_transpose,
                      .unview = unview_transpose,
                      .examples = {"transpose(f32[3,4]) {axes=[1,0]}", "transpose(f32[2,3,4]) {axes=[1,2,0]}",
                                   "transpose(bool[2,1,3]) {axes=[2,0,1]}", "transpose(f32[]) {axes=[]}"},
                  })

OP_WITHOUT_KERNEL(slice,
                  {
                      .doc = "x[starts:stops:steps] in every dimension; steps are positive, none listed means all 1",
                      .traits = kView | kAnyStrides | kNativeHalf,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .attrs = &attr_schema<SliceAttrs>(),
                      .infer = infer_slice,
                      .vjp = vjp_slice,
                      .view = view_slice,
                      .unview = unview_slice,
                      .examples = {"slice(f32[3,4]) {starts=[1,0], stops=[3,2]}", "slice(f32[5]) {starts=[2], stops=[2]}",
                                   "slice(f32[7,5]) {starts=[1,0], stops=[7,5], steps=[2,3]}",
                                   "slice(i32[4,6]) {starts=[0,1], stops=[4,6], steps=[1,2]}"},
                  })

OP_WITHOUT_KERNEL(diagonal,
                  {
                      .doc = "the diagonal of two axes, `offset` above the main one, as a new last dimension in their place",
                      .traits = kView | kAnyStrides | kNativeHalf,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .attrs = &attr_schema<DiagonalAttrs>(),
                      .infer = infer_diagonal,
                      .vjp =
                          [](Vjp& b) {
                            const Tensor nothing = zeros_for(b.x(0).type(), b.site());
                            b.dx(0, apply(ops::diagonal_assign, {&nothing, &b.dy()}, b.attrs, b.site()));
                          },
                      .view = view_diagonal,
                      .unview = unview_diagonal,
                      .examples = {"diagonal(f32[3,4])", "diagonal(f32[4,2,3]) {offset=1, axis1=2, axis2=0}",
                                   "diagonal(f32[3,3]) {offset=-2}", "diagonal(f32[2,3]) {offset=3}",
                                   "diagonal(i32[2,5,5]) {axis1=1, axis2=2}"},
                  })

OP_WITHOUT_KERNEL(broadcast_to, {
                                    .doc = "repeats size-1 and missing leading dimensions up to a shape",
                                    .traits = kView | kAnyStrides | kNativeHalf | kBroadcast,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .attrs = &attr_schema<ShapeAttrs>(),
                                    .infer = infer_broadcast_to,
                                    .vjp = [](Vjp& b) { b.dx(0, b.dy()); },
                                    .view = view_broadcast_to,
                                    .examples = {"broadcast_to(f32[3,1]) {shape=[3,4]}", "broadcast_to(f32[4]) {shape=[2,3,4]}",
                                                 "broadcast_to(f32[]) {shape=[2,0]}", "broadcast_to(bool[1,2]) {shape=[3,2]}"},
                                })

OP_WITHOUT_KERNEL(alias, {
                             .doc = "the same value under another name",
                             .traits = kView | kAnyStrides | kNativeHalf,
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .infer = infer_same,
                             .vjp = [](Vjp& b) { b.dx(0, b.dy()); },
                             .view = view_identity,
                             .unview = [](const Tensor&, const Tensor& piece, const void*, Site) { return piece; },
                             .examples = {"alias(f32[3,4])", "alias(i64[])"},
                         })

OP_WITHOUT_KERNEL(stop_gradient, {
                                     .doc = "the same value; no gradient passes",
                                     .traits = kView | kAnyStrides | kNativeHalf | kNoGradient,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .infer = infer_same,
                                     .no_gradient = "it is there to stop the gradient",
                                     .view = view_identity,
                                     .examples = {"stop_gradient(f32[3,4])"},
                                 })

// ---- the opposite of views: the base with some elements replaced ----

OP(slice_assign, {
                     .doc = "base with base[starts:stops:steps] replaced by piece; steps as in slice",
                     .traits = kCheap | kAnyStrides | kNativeHalf,
                     .inplace = {{0, 0}},
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .attrs = &attr_schema<SliceAttrs>(),
                     .infer =
                         [](Infer& f) {
                           infer_slice(f);
                           infer_assign(f);
                         },
                     .vjp = [](Vjp& b) { vjp_assign(b, ops::slice); },
                     .examples = {"slice_assign(f32[3,4], f32[2,2]) {starts=[1,0], stops=[3,2]}",
                                  "slice_assign(f32[5], f32[0]) {starts=[2], stops=[2]}",
                                  "slice_assign(f32[7,5], f32[3,2]) {starts=[1,0], stops=[7,5], steps=[2,3]}",
                                  "slice_assign(f32[], f32[]) {starts=[], stops=[]}",
                                  "slice_assign(bool[4], bool[2]) {starts=[0], stops=[4], steps=[2]}"},
                 })

OP(diagonal_assign,
   {
       .doc = "base with the diagonal of two axes replaced by piece; the attributes are those of diagonal",
       .traits = kCheap | kAnyStrides | kNativeHalf,
       .inplace = {{0, 0}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<DiagonalAttrs>(),
       .infer =
           [](Infer& f) {
             infer_diagonal(f);
             infer_assign(f);
           },
       .vjp = [](Vjp& b) { vjp_assign(b, ops::diagonal); },
       .examples = {"diagonal_assign(f32[3,4], f32[3])", "diagonal_assign(f32[4,2,3], f32[2,3]) {offset=1, axis1=2, axis2=0}",
                    "diagonal_assign(f32[2,3], f32[0]) {offset=3}", "diagonal_assign(i64[3,3], i64[2]) {offset=-1}"},
   })

// ---- ops that copy ----

OP(pad, {
            .doc = "zeros before and after every dimension",
            .traits = kCheap | kAnyStrides | kNativeHalf,
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<PadAttrs>(),
            .infer = infer_pad,
            .vjp =
                [](Vjp& b) {
                  const auto& a = b.attributes<PadAttrs>();
                  Ints starts, stops;
                  for (int i = 0; i < a.before.size; ++i) {
                    starts.push_back(a.before[i]);
                    stops.push_back(a.before[i] + b.x(0).shape()[i]);
                  }
                  b.dx(0, slice(b.dy(), starts, stops));
                },
            .part = part_of_pad,
            .examples = {"pad(f32[3,4]) {before=[1,0], after=[0,2]}", "pad(f32[2,0,3]) {before=[0,1,2], after=[1,0,0]}",
                         "pad(bool[3]) {before=[2], after=[1]}", "pad(f32[]) {before=[], after=[]}"},
        })

OP(concat, {
               .doc = "tensors one after the other along an axis",
               .traits = kCheap | kAnyStrides | kNativeHalf,
               .min_inputs = 1,
               .max_inputs = -1,
               .attrs = &attr_schema<AxisAttrs>(),
               .infer = infer_concat,
               .vjp =
                   [](Vjp& b) {
                     const int axis = static_cast<int>(b.attributes<AxisAttrs>().axis);
                     std::int64_t at = 0;
                     for (int i = 0; i < b.n_inputs(); ++i) {
                       const Shape& shape = b.x(i).shape();
                       Ints starts, stops;
                       for (int d = 0; d < shape.rank; ++d) {
                         starts.push_back(d == axis ? at : 0);
                         stops.push_back(d == axis ? at + shape[d] : shape[d]);
                       }
                       at += shape[axis];
                       if (b.needs(i)) b.dx(i, slice(b.dy(), starts, stops));
                     }
                   },
               .part = parts_of_concat,
               .joins_in_turn = true,
               .examples = {"concat(f32[2,3], f32[2,1]) {axis=1}", "concat(f32[2,3], f32[0,3], f32[1,3]) {axis=0}",
                            "concat(u8[2], u8[3]) {axis=0}"},
           })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor reshape(const Arg& x, const Shape& shape);
// One size in the list may be -1. It becomes the number of elements of x divided by the product of the other sizes.
Tensor reshape(const Arg& x, std::initializer_list<std::int64_t> shape);
Tensor transpose(const Arg& x, const Ints& axes);  // result dimension i is input dimension axes[i]
Tensor transpose_last(const Arg& x);               // swaps the last two dimensions
// Negative bounds count from the end. Bounds are limited to the size, as in Python. Steps are positive.
Tensor slice(const Arg& x, const Ints& starts, const Ints& stops, const Ints& steps = {});
Tensor slice_along(const Arg& x, std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
template <std::integral Axis>  // a template, so that a braced list of one number selects slice() with lists
Tensor slice(const Arg& x, Axis axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  return slice_along(x, axis, start, stop, step);
}
Tensor slice_assign(const Arg& base, const Tensor& piece, const Ints& starts, const Ints& stops, const Ints& steps = {});
// The elements [.., i, .., i + offset, ..] of two axes become the last dimension. The other axes keep their order.
Tensor diagonal(const Arg& x, std::int64_t offset = 0, std::int64_t axis1 = 0, std::int64_t axis2 = 1);
Tensor diagonal_assign(const Arg& base, const Tensor& piece, std::int64_t offset = 0, std::int64_t axis1 = 0,
                       std::int64_t axis2 = 1);
Tensor broadcast_to(const Arg& x, const Shape& shape);
Tensor pad(const Arg& x, const Ints& before, const Ints& after);
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis,
              Site site = {__builtin_FILE(), __builtin_LINE()});  // dtypes promote
Tensor alias(const Arg& x);                                       // the same value, bytes and gradient under another handle
Tensor stop_gradient(const Arg& x);
Tensor contiguous(const Arg& x);  // x itself if it is dense, else a copy
#endif

}  // namespace TAPEDECK_API
#endif
