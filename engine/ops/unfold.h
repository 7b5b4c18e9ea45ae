// unfold makes columns of the windows of images. fold adds such columns back into images.
#if !defined(TAPEDECK_ENGINE_OPS_UNFOLD_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_UNFOLD_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/unfold.h>

namespace tapedeck TAPEDECK_API {

OP(unfold, {
               .doc = "every window of [n,c,h,w], zero padded, as a column: [n, c kh kw, number of windows]",
               .traits = kNativeHalf,
               .min_inputs = 1,
               .max_inputs = 1,
               .attrs = &attr_schema<UnfoldAttrs>(),
               .infer = infer_unfold,
               .vjp =
                   [](Vjp& b) {
                     const auto& a = b.attributes<UnfoldAttrs>();
                     const FoldAttrs back{{b.x(0).size(2), b.x(0).size(3)}, a.window, a.stride, a.padding, a.dilation};
                     b.dx(0, apply(ops::fold, {&b.dy()}, &back, b.site()));
                   },
               .examples = {"unfold(f32[2,3,4,5]) {window=[2,3]}",
                            "unfold(f32[1,2,7,6]) {window=[3,2], stride=[2,3], padding=[1,2], dilation=[2,1]}",
                            "unfold(f32[1,1,2,2]) {window=[1,1], padding=[3,3], stride=[2,2]}",
                            "unfold(f32[0,2,3,3]) {window=[2,2]}", "unfold(i32[1,1,3,3]) {window=[2,2]}"},
           })

OP(fold, {
             .doc = "columns [n, c kh kw, number of windows] added up where their windows lie in an image of `size`: [n,c,h,w]",
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<FoldAttrs>(),
             .infer = infer_fold,
             .vjp =
                 [](Vjp& b) {
                   const auto& a = b.attributes<FoldAttrs>();
                   const UnfoldAttrs back{a.window, a.stride, a.padding, a.dilation};
                   b.dx(0, apply(ops::unfold, {&b.dy()}, &back, b.site()));
                 },
             .examples = {"fold(f32[2,18,9]) {size=[4,5], window=[2,3]}",
                          "fold(f32[1,12,9]) {size=[7,6], window=[3,2], stride=[2,3], padding=[1,2], dilation=[2,1]}",
                          "fold(f32[1,1,16]) {size=[2,2], window=[1,1], padding=[3,3], stride=[2,2]}"},
         })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors: lists of attributes are {height, width} ----

Tensor unfold(const Arg& x, const UnfoldAttrs& attrs);
Tensor fold(const Arg& columns, const FoldAttrs& attrs);
#endif

}  // namespace TAPEDECK_API
#endif
