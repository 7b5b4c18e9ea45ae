// Pooling: maximum and mean over windows of [n,c,spatial].
#if !defined(TAPEDECK_ENGINE_OPS_POOL_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_POOL_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/pool.h>

namespace tapedeck TAPEDECK_API {

OP(max_pool2d,
   {
       .doc = "largest element of each window of [n,c,h,w], NaN if any is; padding never wins",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<PoolAttrs>(),
       .infer = infer_max_pool<2>,
       .vjp = vjp_max_pool<max_pool2d_index, max_pool2d_grad_from_index>,
       .cost = cost_of_results<PoolAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"max_pool2d(f32[2,3,6,4])", "max_pool2d(f32[1,2,5,5]) {window=[3,3], stride=[1,1]}",
                    "max_pool2d(f32[2,2,7,6]) {window=[3,2], stride=[2,3], padding=[1,0], dilation=[1,2], ceil_mode=true}",
                    "max_pool2d(f32[1,1,3,150]) {window=[1,3], stride=[1], padding=[0,1]}", "max_pool2d(f32[0,2,4,4])"},
   })

OP(max_pool2d_grad, {
                        .doc = "gradient of max_pool2d from x [n,c,h,w] itself and dy; the first maximum of a window gets it",
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .attrs = &attr_schema<PoolAttrs>(),
                        .infer = infer_max_pool_grad,
                        .vjp = nullptr,
                        .no_gradient = "max_pool2d_grad_from_index, which the gradient of max_pool2d uses, has one",
                        .cost = cost_of_gradient<PoolAttrs>,
                        .batch_strides = {0b11, 0b1},
                        .examples = {"max_pool2d_grad(f32[2,3,6,4], f32[2,3,3,2])",
                                     "max_pool2d_grad(f32[1,2,5,5], f32[1,2,3,3]) {window=[3], stride=[2], padding=[1]}"},
                    })

OP(max_pool2d_index,
   {
       .doc = "place in its window, row-major, of the first maximum of each window of [n,c,h,w]; u8, i32 for windows above 256",
       .traits = kNoGradient,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<PoolAttrs>(),
       .infer = infer_max_pool_index<2>,
       .no_gradient = "the result is an integer",
       .cost = cost_of_results<PoolAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"max_pool2d_index(f32[2,3,6,4])", "max_pool2d_index(f32[1,2,7,7]) {window=[3], stride=[2], padding=[1]}",
                    "max_pool2d_index(f32[1,1,18,20]) {window=[17]}"},
   })

OP(max_pool2d_grad_from_index,
   {
       .doc =
           "gradient of max_pool2d: each element of dy goes to the element of its window that index names, none in the padding",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<PoolIndexGradAttrs>(),
       .infer = infer_max_pool_grad_from_index<2>,
       .vjp = [](Vjp& b) { b.dx(1, max_pool2d_at_index(b.dy(), b.x(0), pool_attrs(b.attributes<PoolIndexGradAttrs>()))); },
       .batch_strides = {0b11, 0b1},
       .examples =
           {"max_pool2d_grad_from_index(u8[2,3,3,2], f32[2,3,3,2]) {size=[6,4]}",
            "max_pool2d_grad_from_index(u8[1,2,4,4] in (0,9), f32[1,2,4,4]) {window=[3], stride=[2], padding=[1], size=[7,7]}",
            "max_pool2d_grad_from_index(i32[1,1,1,1] in (0,289), f32[1,1,1,1]) {window=[17], size=[18,20]}"},
   })

OP(max_pool2d_at_index,
   {
       .doc = "of each window of x [n,c,h,w] the element that index names, 0 in the padding",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<PoolAttrs>(),
       .infer = infer_max_pool_at_index<2>,
       .vjp =
           [](Vjp& b) {
             b.dx(0, max_pool2d_grad_from_index(b.x(1), b.dy(), index_grad_attrs(b.attributes<PoolAttrs>(), b.x(0).shape())));
           },
       .batch_strides = {0b11, 0b1},
       .examples = {"max_pool2d_at_index(f32[2,3,6,4], u8[2,3,3,2])",
                    "max_pool2d_at_index(f32[1,2,7,7], u8[1,2,4,4] in (0,9)) {window=[3], stride=[2], padding=[1]}"},
   })

OP(avg_pool2d,
   {
       .doc = "mean of each window of [n,c,h,w], zero padding",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AvgPoolAttrs>(),
       .infer = infer_avg_pool<2>,
       .vjp = [](Vjp& b) { b.dx(0, avg_pool2d_grad(b.dy(), avg_grad_attrs(b.attributes<AvgPoolAttrs>(), b.x(0).shape()))); },
       .cost = cost_of_results<AvgPoolAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"avg_pool2d(f32[2,3,6,4])",
                    "avg_pool2d(f32[1,2,7,6]) {window=[3,2], stride=[2,3], padding=[1,0], ceil_mode=true}",
                    "avg_pool2d(f32[1,2,7,7]) {window=[3], stride=[2], padding=[1], count_include_pad=false}",
                    "avg_pool2d(f32[2,0,4,4])"},
   })

OP(avg_pool2d_grad,
   {
       .doc = "gradient of avg_pool2d: dy -> [n,c,h,w]",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AvgPoolGradAttrs>(),
       .infer = infer_avg_pool_grad<2>,
       .vjp = [](Vjp& b) { b.dx(0, avg_pool2d(b.dy(), avg_attrs(b.attributes<AvgPoolGradAttrs>()))); },
       .cost = cost_of_gradient<AvgPoolGradAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"avg_pool2d_grad(f32[2,3,3,2]) {size=[6,4]}",
                    "avg_pool2d_grad(f32[1,2,4,3]) {window=[3,2], stride=[2,3], padding=[1,0], size=[7,7], ceil_mode=true}",
                    "avg_pool2d_grad(f32[1,2,4,4]) {window=[3], stride=[2], padding=[1], size=[7,7], count_include_pad=false}"},
   })

OP(adaptive_avg_pool2d,
   {
       .doc = "mean of [n,c,h,w] over as many windows as `size` says, of almost equal sizes: floor(i h / size) to ceil((i + 1) "
              "h / size)",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AdaptivePoolAttrs>(),
       .infer = infer_adaptive_pool,
       .vjp = [](Vjp& b) { b.dx(0, adaptive_avg_pool2d_grad(b.dy(), sizes_of(b.x(0)))); },
       .batch_strides = {0b1, 0b1},
       .examples = {"adaptive_avg_pool2d(f32[2,3,7,5]) {size=[3,2]}", "adaptive_avg_pool2d(f32[1,2,3,4]) {size=[5,4]}"},
   })

OP(adaptive_avg_pool2d_grad, {
                                 .doc = "gradient of adaptive_avg_pool2d: dy -> [n,c,h,w], which `size` gives",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .attrs = &attr_schema<AdaptivePoolAttrs>(),
                                 .infer = infer_adaptive_pool,
                                 .vjp = [](Vjp& b) { b.dx(0, adaptive_windows(b.dy(), sizes_of(b.x(0)))); },
                                 .batch_strides = {0b1, 0b1},
                                 .examples = {"adaptive_avg_pool2d_grad(f32[2,3,3,2]) {size=[7,5]}",
                                              "adaptive_avg_pool2d_grad(f32[1,2,5,4]) {size=[3,4]}"},
                             })

OP(adaptive_max_pool2d,
   {
       .doc = "largest element of the windows of adaptive_avg_pool2d, NaN if any is",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AdaptivePoolAttrs>(),
       .infer = infer_adaptive_pool,
       .vjp =
           [](Vjp& b) {
             const Tensor index = adaptive_max_pool2d_index(b.x(0), b.attributes<AdaptivePoolAttrs>());
             b.dx(0, adaptive_max_pool2d_grad_from_index(index, b.dy(), sizes_of(b.x(0))));
           },
       .batch_strides = {0b1, 0b1},
       .examples = {"adaptive_max_pool2d(f32[2,3,7,5]) {size=[3,2]}", "adaptive_max_pool2d(f32[1,2,3,4]) {size=[5,4]}"},
   })

OP(adaptive_max_pool2d_index,
   {
       .doc = "place in its plane, row-major, of the first maximum of each window of adaptive_max_pool2d; i32",
       .traits = kNoGradient,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AdaptivePoolAttrs>(),
       .infer = infer_adaptive_index,
       .no_gradient = "the result is an integer",
       .batch_strides = {0b1, 0b1},
       .examples = {"adaptive_max_pool2d_index(f32[2,3,7,5]) {size=[3,2]}"},
   })

OP(adaptive_max_pool2d_grad_from_index,
   {
       .doc = "gradient of adaptive_max_pool2d: each element of dy goes to the element of its plane [h,w] that index names",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<AdaptivePoolAttrs>(),
       .infer = infer_adaptive_grad_from_index,
       .vjp = [](Vjp& b) { b.dx(1, adaptive_max_pool2d_at_index(b.dy(), b.x(0))); },
       .batch_strides = {0b11, 0b1},
       .examples = {"adaptive_max_pool2d_grad_from_index(i32[2,3,3,2] in (0,35), f32[2,3,3,2]) {size=[7,5]}"},
   })

OP(adaptive_max_pool2d_at_index,
   {
       .doc = "the elements of the planes of x [n,c,h,w] that index [n,c,oh,ow] names",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_adaptive_at_index,
       .vjp = [](Vjp& b) { b.dx(0, adaptive_max_pool2d_grad_from_index(b.x(1), b.dy(), sizes_of(b.x(0)))); },
       .batch_strides = {0b11, 0b1},
       .examples = {"adaptive_max_pool2d_at_index(f32[2,3,7,5], i32[2,3,3,2] in (0,35))"},
   })

OP(max_pool3d, {
                   .doc = "largest element of each window of [n,c,d,h,w], NaN if any is; padding never wins",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = &attr_schema<PoolAttrs>(),
                   .infer = infer_max_pool<3>,
                   .vjp = vjp_max_pool<max_pool3d_index, max_pool3d_grad_from_index>,
                   .cost = cost_of_results<PoolAttrs>,
                   .batch_strides = {0b1, 0b1},
                   .examples = {"max_pool3d(f32[2,3,4,6,4])",
                                "max_pool3d(f32[1,2,5,4,5]) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1], ceil_mode=true}"},
               })

OP(max_pool3d_index,
   {
       .doc =
           "place in its window, row-major, of the first maximum of each window of [n,c,d,h,w]; u8, i32 for windows above 256",
       .traits = kNoGradient,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<PoolAttrs>(),
       .infer = infer_max_pool_index<3>,
       .no_gradient = "the result is an integer",
       .cost = cost_of_results<PoolAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"max_pool3d_index(f32[2,3,4,6,4])", "max_pool3d_index(f32[1,1,8,8,9]) {window=[8,7,6], stride=[1]}"},
   })

OP(max_pool3d_grad_from_index,
   {
       .doc =
           "gradient of max_pool3d: each element of dy goes to the element of its window that index names, none in the padding",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<PoolIndexGradAttrs>(),
       .infer = infer_max_pool_grad_from_index<3>,
       .vjp = [](Vjp& b) { b.dx(1, max_pool3d_at_index(b.dy(), b.x(0), pool_attrs(b.attributes<PoolIndexGradAttrs>()))); },
       .batch_strides = {0b11, 0b1},
       .examples = {"max_pool3d_grad_from_index(u8[1,2,3,3,3] in (0,18), f32[1,2,3,3,3]) "
                    "{window=[3,2,3], stride=[2,1,2], padding=[1,0,1], size=[5,4,5]}"},
   })

OP(max_pool3d_at_index,
   {
       .doc = "of each window of x [n,c,d,h,w] the element that index names, 0 in the padding",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<PoolAttrs>(),
       .infer = infer_max_pool_at_index<3>,
       .vjp =
           [](Vjp& b) {
             b.dx(0, max_pool3d_grad_from_index(b.x(1), b.dy(), index_grad_attrs(b.attributes<PoolAttrs>(), b.x(0).shape())));
           },
       .batch_strides = {0b11, 0b1},
       .examples =
           {"max_pool3d_at_index(f32[1,2,5,4,5], u8[1,2,3,3,3] in (0,18)) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1]}"},
   })

OP(avg_pool3d,
   {
       .doc = "mean of each window of [n,c,d,h,w], zero padding",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AvgPoolAttrs>(),
       .infer = infer_avg_pool<3>,
       .vjp = [](Vjp& b) { b.dx(0, avg_pool3d_grad(b.dy(), avg_grad_attrs(b.attributes<AvgPoolAttrs>(), b.x(0).shape()))); },
       .cost = cost_of_results<AvgPoolAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples = {"avg_pool3d(f32[2,3,4,6,4])",
                    "avg_pool3d(f32[1,2,5,4,6]) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1], ceil_mode=true, "
                    "count_include_pad=false}"},
   })

OP(avg_pool3d_grad,
   {
       .doc = "gradient of avg_pool3d: dy -> [n,c,d,h,w]",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<AvgPoolGradAttrs>(),
       .infer = infer_avg_pool_grad<3>,
       .vjp = [](Vjp& b) { b.dx(0, avg_pool3d(b.dy(), avg_attrs(b.attributes<AvgPoolGradAttrs>()))); },
       .cost = cost_of_gradient<AvgPoolGradAttrs>,
       .batch_strides = {0b1, 0b1},
       .examples =
           {"avg_pool3d_grad(f32[1,2,3,3,4]) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1], size=[5,4,6], ceil_mode=true}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Pools of x [n,c,spatial], for floating types. Lists hold one number for all dimensions or one for each. Without a stride,
// the stride is the window. Padding is at most half a window. With ceil_mode, a last window that reaches over the end counts
// too.
Tensor max_pool1d(const Arg& x, const PoolAttrs& attrs = {});
Tensor max_pool2d(const Arg& x, const PoolAttrs& attrs = {});
Tensor max_pool3d(const Arg& x, const PoolAttrs& attrs = {});
Tensor avg_pool1d(const Arg& x, const AvgPoolAttrs& attrs = {});
Tensor avg_pool2d(const Arg& x, const AvgPoolAttrs& attrs = {});
Tensor avg_pool3d(const Arg& x, const AvgPoolAttrs& attrs = {});

// Pools of x [n,c,h,w] to [n,c,size]. Window i covers the elements from floor(i h / size) to ceil((i + 1) h / size).
Tensor adaptive_avg_pool2d(const Arg& x, const Ints& size);
Tensor adaptive_max_pool2d(const Arg& x, const Ints& size);

// Mean and maximum over all spatial dimensions of x [n,c,spatial], which stay with size 1. Equal maxima share the gradient.
Tensor global_avg_pool(const Arg& x);
Tensor global_max_pool(const Arg& x);

// The ops that the gradients use.
Tensor max_pool2d_grad(const Arg& x, const Tensor& dy, const PoolAttrs& attrs);
Tensor max_pool2d_index(const Arg& x, const PoolAttrs& attrs = {});
Tensor max_pool2d_grad_from_index(const Arg& index, const Tensor& dy, const PoolIndexGradAttrs& attrs);
Tensor max_pool2d_at_index(const Arg& x, const Tensor& index, const PoolAttrs& attrs = {});
Tensor max_pool3d_index(const Arg& x, const PoolAttrs& attrs = {});
Tensor max_pool3d_grad_from_index(const Arg& index, const Tensor& dy, const PoolIndexGradAttrs& attrs);
Tensor max_pool3d_at_index(const Arg& x, const Tensor& index, const PoolAttrs& attrs = {});
Tensor avg_pool2d_grad(const Arg& dy, const AvgPoolGradAttrs& attrs);
Tensor avg_pool3d_grad(const Arg& dy, const AvgPoolGradAttrs& attrs);
Tensor adaptive_avg_pool2d_grad(const Arg& dy, const AdaptivePoolAttrs& attrs);
Tensor adaptive_max_pool2d_index(const Arg& x, const AdaptivePoolAttrs& attrs);
Tensor adaptive_max_pool2d_grad_from_index(const Arg& index, const Tensor& dy, const AdaptivePoolAttrs& attrs);
Tensor adaptive_max_pool2d_at_index(const Arg& x, const Tensor& index);
#endif

}  // namespace TAPEDECK_API
#endif
