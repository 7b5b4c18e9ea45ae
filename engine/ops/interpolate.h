// Resampling of images and signals [n,c,...] to another size.
#if !defined(TAPEDECK_ENGINE_OPS_INTERPOLATE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_INTERPOLATE_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/interpolate.h>

#include <string_view>

namespace tapedeck TAPEDECK_API {

OP(interpolate_nearest,
   {
       .doc = "[n,c,...] with one to three further dimensions resampled to `size`: result i shows element floor(i in / out)",
       .traits = kCheap | kNativeHalf,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<InterpolateNearestAttrs>(),
       .infer = infer_nearest,
       .vjp = [](Vjp& b) { b.dx(0, resampled(ops::interpolate_nearest_grad, b)); },
       .batch_strides = {0b1, 0b1},
       .examples = {"interpolate_nearest(f32[2,3,4]) {size=[7]}", "interpolate_nearest(f32[2,1,3,4]) {size=[6,12]}",
                    "interpolate_nearest(f32[1,2,5,4]) {size=[3,3]}", "interpolate_nearest(f32[1,2,2,3,2]) {size=[3,2,5]}",
                    "interpolate_nearest(f32[0,2,3,3]) {size=[2,2]}", "interpolate_nearest(u8[1,1,2,2]) {size=[4,3]}"},
   })

OP(interpolate_nearest_grad,
   {
       .doc = "gradient of interpolate_nearest, for an input of `size`: sums of the elements that show the same one",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<InterpolateNearestAttrs>(),
       .infer =
           [](Infer& f) {
             infer_require_float(f, f.inputs[0]);
             infer_nearest(f);
           },
       .vjp = [](Vjp& b) { b.dx(0, resampled(ops::interpolate_nearest, b)); },
       .batch_strides = {0b1, 0b1},
       .examples = {"interpolate_nearest_grad(f32[2,3,7]) {size=[4]}", "interpolate_nearest_grad(f32[2,1,6,12]) {size=[3,4]}",
                    "interpolate_nearest_grad(f32[1,2,3,3]) {size=[5,4]}",
                    "interpolate_nearest_grad(f32[1,2,3,2,5]) {size=[2,3,2]}"},
   })

OP(interpolate_bilinear,
   {
       .doc = "[n,c,h,w] resampled to `size` by weighing the four nearest elements",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<InterpolateBilinearAttrs>(),
       .infer = infer_bilinear,
       .vjp = [](Vjp& b) { b.dx(0, resampled(ops::interpolate_bilinear_grad, b)); },
       .cost = cost_bilinear,
       .workspace = [](std::span<const Type>, std::span<const Type> out, const void*) { return bytes_of_taps(out[0]); },
       .batch_strides = {0b1, 0b1},
       .examples = {"interpolate_bilinear(f32[2,3,4,5]) {size=[7,9]}",
                    "interpolate_bilinear(f32[1,2,4,5]) {size=[8,3], align_corners=true}",
                    "interpolate_bilinear(f32[1,1,1,6]) {size=[3,1]}",
                    "interpolate_bilinear(f32[1,2,3,3]) {size=[1,5], align_corners=true}",
                    "interpolate_bilinear(f32[2,0,3,3]) {size=[2,2]}"},
   })

OP(interpolate_bilinear_grad,
   {
       .doc = "gradient of interpolate_bilinear, for an input of `size`",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<InterpolateBilinearAttrs>(),
       .infer = infer_bilinear,
       .vjp = [](Vjp& b) { b.dx(0, resampled(ops::interpolate_bilinear, b)); },
       .cost = cost_bilinear,
       .workspace = [](std::span<const Type> in, std::span<const Type>, const void*) { return bytes_of_taps(in[0]); },
       .batch_strides = {0b1, 0b1},
       .examples = {"interpolate_bilinear_grad(f32[2,3,7,9]) {size=[4,5]}",
                    "interpolate_bilinear_grad(f32[1,2,8,3]) {size=[4,5], align_corners=true}",
                    "interpolate_bilinear_grad(f32[1,1,3,1]) {size=[1,6]}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// `mode` is "nearest" (any dtype, one to three dimensions after [n,c]) or "bilinear" (floating types, two dimensions after
// [n,c]).
Tensor interpolate(const Arg& x, const Ints& size, std::string_view mode = "nearest", bool align_corners = false);
#endif

}  // namespace TAPEDECK_API
#endif
