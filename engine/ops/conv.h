// Convolution and pooling, NCHW.
#if !defined(TAPEDECK_ENGINE_OPS_CONV_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CONV_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(conv2d, {
  .doc = "2-d convolution (cross-correlation) of x [n,ci,h,w] with weights [co,ci,kh,kw], zero padding",
  .min_inputs = 2, .max_inputs = 2,
  .attrs = &attr_schema<ConvAttrs>(),
  .infer = infer_conv2d,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<ConvAttrs>();
    const Shape& x = b.x(0).shape();
    const Shape& w = b.x(1).shape();
    if (b.needs(0)) b.dx(0, conv2d_input_grad(b.dy(), b.x(1), {a.stride, a.padding, {x[2], x[3]}}));
    if (b.needs(1)) b.dx(1, conv2d_weight_grad(b.dy(), b.x(0), {a.stride, a.padding, {w[2], w[3]}}));
  },
  .cost = cost_conv2d,
  .workspace = workspace_conv2d,
  .examples = {"conv2d(f32[2,3,6,5], f32[4,3,3,3]) {padding=[1,1]}", "conv2d(f32[1,2,7,7], f32[3,2,3,2]) {stride=[2,1]}"},
})

OP(conv2d_input_grad, {
  .doc = "gradient of conv2d for its input: dy [n,co,oh,ow], weights -> [n,ci,h,w]",
  .min_inputs = 2, .max_inputs = 2,
  .attrs = &attr_schema<ConvInputGradAttrs>(),
  .infer = infer_conv2d_input_grad,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<ConvInputGradAttrs>();
    const Shape& w = b.x(1).shape();
    if (b.needs(0)) b.dx(0, conv2d(b.dy(), b.x(1), {a.stride, a.padding}));
    if (b.needs(1)) b.dx(1, conv2d_weight_grad(b.x(0), b.dy(), {a.stride, a.padding, {w[2], w[3]}}));
  },
  .cost = cost_conv2d_input_grad,
  .workspace = workspace_conv2d_input_grad,
  .examples = {"conv2d_input_grad(f32[2,4,6,5], f32[4,3,3,3]) {padding=[1,1], size=[6,5]}"},
})

OP(conv2d_weight_grad, {
  .doc = "gradient of conv2d for its weights: dy [n,co,oh,ow], x [n,ci,h,w] -> [co,ci,kh,kw]",
  .min_inputs = 2, .max_inputs = 2,
  .attrs = &attr_schema<ConvWeightGradAttrs>(),
  .infer = infer_conv2d_weight_grad,
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<ConvWeightGradAttrs>();
    const Shape& x = b.x(1).shape();
    if (b.needs(0)) b.dx(0, conv2d(b.x(1), b.dy(), {a.stride, a.padding}));
    if (b.needs(1)) b.dx(1, conv2d_input_grad(b.x(0), b.dy(), {a.stride, a.padding, {x[2], x[3]}}));
  },
  .cost = cost_conv2d_weight_grad,
  .workspace = workspace_conv2d_weight_grad,
  .examples = {"conv2d_weight_grad(f32[2,4,6,5], f32[2,3,6,5]) {padding=[1,1], size=[3,3]}"},
})

OP(max_pool2d, {
  .doc = "largest element of each window of [n,c,h,w], without padding",
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<PoolAttrs>(),
  .infer = infer_max_pool2d,
  .vjp = [](Vjp& b) { b.dx(0, max_pool2d_grad(b.x(0), b.dy(), b.attributes<PoolAttrs>())); },
  .examples = {"max_pool2d(f32[2,3,6,4])", "max_pool2d(f32[1,2,5,5]) {window=[3,3], stride=[1,1]}"},
})

OP(max_pool2d_grad, {
  .doc = "gradient of max_pool2d: x [n,c,h,w], dy -> [n,c,h,w]; the first maximum of a window gets it",
  .min_inputs = 2, .max_inputs = 2,
  .attrs = &attr_schema<PoolAttrs>(),
  .infer = [](Infer& f) {
    const Type x = f.inputs[0];
    Infer forward{f.op, f.inputs.first(1), f.attrs, f.outputs};
    infer_max_pool2d(forward);
    if (f.outputs[0] != f.inputs[1]) f.fail("the gradient has type " + to_string(f.inputs[1]) + ", not " + to_string(f.outputs[0]));
    f.outputs.assign(1, x);
  },
  .vjp = nullptr,
  .examples = {"max_pool2d_grad(f32[2,3,6,4], f32[2,3,3,2])"},
})

#ifndef TAPEDECK_DEFINE_OPS
// ---- what authors call ----

inline Tensor conv2d(const Arg& x, const Tensor& w, const ConvAttrs& attrs = {}) {
  return apply(ops::conv2d, {&x.tensor(), &w}, &attrs, x.site());
}
inline Tensor conv2d_input_grad(const Arg& dy, const Tensor& w, const ConvInputGradAttrs& attrs) {
  return apply(ops::conv2d_input_grad, {&dy.tensor(), &w}, &attrs, dy.site());
}
inline Tensor conv2d_weight_grad(const Arg& dy, const Tensor& x, const ConvWeightGradAttrs& attrs) {
  return apply(ops::conv2d_weight_grad, {&dy.tensor(), &x}, &attrs, dy.site());
}
inline Tensor max_pool2d(const Arg& x, const PoolAttrs& attrs = {}) {
  return apply(ops::max_pool2d, {&x.tensor()}, &attrs, x.site());
}
inline Tensor max_pool2d_grad(const Arg& x, const Tensor& dy, const PoolAttrs& attrs) {
  return apply(ops::max_pool2d_grad, {&x.tensor(), &dy}, &attrs, x.site());
}
#endif

}  // namespace tapedeck
#endif
