// Views and other movements of data.
#if !defined(TAPEDECK_ENGINE_OPS_MOVEMENT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_MOVEMENT_H

#include <tapedeck/engine/ops/op_block.h>
#include <vector>

namespace tapedeck TAPEDECK_API {

OP_WITHOUT_KERNEL(reshape, {
  .doc = "the same elements in row-major order under another shape",
  .traits = kView | kAnyStrides,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<ShapeAttrs>(),
  .infer = infer_reshape,
  .vjp = [](Vjp& b) { b.dx(0, reshape(b.dy(), b.x(0).shape())); },
  .view = view_reshape,
  .examples = {"reshape(f32[3,4]) {shape=[2,6]}", "reshape(f32[6]) {shape=[2,1,3]}"},
})

OP_WITHOUT_KERNEL(transpose, {
  .doc = "dimensions in another order",
  .traits = kView | kAnyStrides,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<PermuteAttrs>(),
  .infer = infer_transpose,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<PermuteAttrs>();
    Ints inverse = a.axes;
    for (int i = 0; i < a.axes.size; ++i) inverse.items[a.axes[i]] = i;
    b.dx(0, transpose(b.dy(), inverse));
  },
  .view = view_transpose,
  .examples = {"transpose(f32[3,4]) {axes=[1,0]}", "transpose(f32[2,3,4]) {axes=[1,2,0]}"},
})

OP_WITHOUT_KERNEL(slice, {
  .doc = "x[starts:stops] in every dimension",
  .traits = kView | kAnyStrides,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<SliceAttrs>(),
  .infer = infer_slice,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<SliceAttrs>();
    PadAttrs p;
    for (int i = 0; i < a.starts.size; ++i) {
      p.before.push_back(a.starts[i]);
      p.after.push_back(b.x(0).shape()[i] - a.stops[i]);
    }
    b.dx(0, pad(b.dy(), p.before, p.after));
  },
  .view = view_slice,
  .examples = {"slice(f32[3,4]) {starts=[1,0], stops=[3,2]}", "slice(f32[5]) {starts=[2], stops=[2]}"},
})

OP_WITHOUT_KERNEL(broadcast_to, {
  .doc = "repeats size-1 and missing leading dimensions up to a shape",
  .traits = kView | kAnyStrides,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<ShapeAttrs>(),
  .infer = infer_broadcast_to,
  .vjp = [](Vjp& b) { b.dx(0, b.dy()); },
  .view = view_broadcast_to,
  .examples = {"broadcast_to(f32[3,1]) {shape=[3,4]}", "broadcast_to(f32[4]) {shape=[2,3,4]}"},
})

OP_WITHOUT_KERNEL(stop_gradient, {
  .doc = "the same value; no gradient passes",
  .traits = kView | kAnyStrides | kNoGradient,
  .min_inputs = 1, .max_inputs = 1,
  .infer = infer_same,
  .view = view_identity,
  .examples = {"stop_gradient(f32[3,4])"},
})

OP(pad, {
  .doc = "zeros before and after every dimension",
  .traits = kCheap | kAnyStrides,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<PadAttrs>(),
  .infer = infer_pad,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<PadAttrs>();
    Ints starts, stops;
    for (int i = 0; i < a.before.size; ++i) {
      starts.push_back(a.before[i]);
      stops.push_back(a.before[i] + b.x(0).shape()[i]);
    }
    b.dx(0, slice(b.dy(), starts, stops));
  },
  .examples = {"pad(f32[3,4]) {before=[1,0], after=[0,2]}"},
})

OP(concat, {
  .doc = "tensors one after the other along an axis",
  .traits = kCheap | kAnyStrides,
  .min_inputs = 1, .max_inputs = -1,
  .attrs = &attr_schema<AxisAttrs>(),
  .infer = infer_concat,
  .vjp = [](Vjp& b) {
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
  .examples = {"concat(f32[2,3], f32[2,1]) {axis=1}", "concat(f32[2,3], f32[0,3], f32[1,3]) {axis=0}"},
})

#ifndef TAPEDECK_DEFINE_OPS
// ---- what authors call ----

// One size may be -1: whatever is left.
Tensor reshape(const Arg& x, const Shape& shape);
Tensor reshape(const Arg& x, std::initializer_list<std::int64_t> shape);
Tensor transpose(const Arg& x, const Ints& axes);       // result dimension i is input dimension axes[i]
Tensor transpose_last(const Arg& x);                    // swaps the last two dimensions
// Negative bounds count from the end; bounds are clamped as in Python.
Tensor slice(const Arg& x, const Ints& starts, const Ints& stops);
Tensor slice(const Arg& x, int dim, std::int64_t start, std::int64_t stop);
Tensor broadcast_to(const Arg& x, const Shape& shape);
Tensor pad(const Arg& x, const Ints& before, const Ints& after);
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor stop_gradient(const Arg& x);
Tensor contiguous(const Arg& x);                        // x itself if dense, else a copy
#endif

}  // namespace tapedeck
#endif
