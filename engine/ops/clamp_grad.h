// The gradient of clamp, relu6 and hardtanh. No author calls the op.
#if !defined(TAPEDECK_ENGINE_OPS_CLAMP_GRAD_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CLAMP_GRAD_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/functions.h>

namespace tapedeck TAPEDECK_API {

// It reads the result of clamp, since the result lies between the bounds where the operand does. A net often keeps the result
// anyway, for the product or convolution that follows.
OP(clamp_grad,
   {
       .doc = "gradient of clamp from the result: y, dy -> dy where min < y < max, else 0; an infinite bound does not bind",
       .traits = kElementwise | kCheap | kAnyStrides,
       .inplace = {{0, 1}, {0, 0}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ClampAttrs>(),
       .infer = infer_clamp_grad,
       .vjp =
           [](Vjp& b) {
             if (b.needs(1)) b.dx(1, clamp_grad(b.x(0), b.dy(), b.attributes<ClampAttrs>()));
           },
       .examples = {"clamp_grad(f32[3,5], f32[3,5]) {min=-0.5, max=0.75}", "clamp_grad(f32[4,1], f32[4,1]) {min=0.0}",
                    "clamp_grad(f32[2,3], f32[2,3]) {max=0.25}", "clamp_grad(f32[0], f32[0]) {max=6.0}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
inline Tensor clamp_grad(const Arg& y, const Tensor& dy, const ClampAttrs& attrs) {
  return apply(ops::clamp_grad, {&y.tensor(), &dy}, &attrs, y.site());
}
#endif

}  // namespace TAPEDECK_API

#endif
