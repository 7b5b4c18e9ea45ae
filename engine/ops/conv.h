// Convolutions over one, two and three spatial dimensions. Tensors are [n,channels,spatial].
#if !defined(TAPEDECK_ENGINE_OPS_CONV_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CONV_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(conv2d,
   {
       .doc = "2-d convolution (cross-correlation) of x [n,ci,h,w] with weights [co,ci/groups,kh,kw], zero padding",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ConvAttrs>(),
       .infer = infer_conv<2>,
       .vjp = vjp_conv<conv2d_input_grad, conv2d_weight_grad>,
       .cost = cost_conv,
       .workspace = workspace_conv<2>,
       .batch_strides = {0b01, 0b1},
       .examples = {"conv2d(f32[2,3,6,5], f32[4,3,3,3]) {padding=[1,1]}", "conv2d(f32[1,2,7,7], f32[3,2,3,2]) {stride=[2,1]}",
                    "conv2d(f32[2,4,6,7], f32[6,2,3,3]) {stride=[2], padding=[1,0,0,2], dilation=[1,2], groups=2}",
                    "conv2d(f32[2,5,5,6], f32[5,1,3,3]) {padding=[2], dilation=[2], groups=5}",
                    "conv2d(f32[1,3,8,8], f32[8,3,4,4]) {stride=[4]}", "conv2d(f32[0,3,4,4], f32[2,3,1,1])"},
   })

OP(conv2d_input_grad,
   {
       .doc = "gradient of conv2d for its input, and transposed convolution: dy [n,co,oh,ow], weights -> [n,ci,h,w]",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ConvInputGradAttrs>(),
       .infer = infer_conv_input_grad<2>,
       .vjp = vjp_conv_input_grad<conv2d, conv2d_weight_grad>,
       .cost = cost_conv_input_grad,
       .workspace = workspace_conv_input_grad<2>,
       .batch_strides = {0b01, 0b1},
       .examples = {"conv2d_input_grad(f32[2,4,6,5], f32[4,3,3,3]) {padding=[1,1], size=[6,5]}",
                    "conv2d_input_grad(f32[2,6,3,4], f32[6,2,3,3]) {stride=[2], padding=[1,0,0,2], dilation=[1,2], groups=2, "
                    "size=[6,9]}",
                    "conv2d_input_grad(f32[1,3,3,3], f32[3,1,2,2]) {stride=[2], groups=3, size=[7,6]}"},
   })

OP(conv2d_weight_grad, {
                           .doc = "gradient of conv2d for its weights: dy [n,co,oh,ow], x [n,ci,h,w] -> [co,ci/groups,kh,kw]",
                           .traits = kLowPrecision | kNativeHalf,
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .attrs = &attr_schema<ConvWeightGradAttrs>(),
                           .infer = infer_conv_weight_grad<2>,
                           .vjp = vjp_conv_weight_grad<conv2d, conv2d_input_grad>,
                           .cost = cost_conv_weight_grad,
                           .workspace = workspace_conv_weight_grad<2>,
                           .batch_strides = {0b11, 0b0},
                           .examples = {"conv2d_weight_grad(f32[2,4,6,5], f32[2,3,6,5]) {padding=[1,1], size=[3,3]}",
                                        "conv2d_weight_grad(f32[2,6,3,4], f32[2,4,6,9]) {stride=[2], padding=[1,0,0,2], "
                                        "dilation=[1,2], groups=2, size=[3,3]}",
                                        "conv2d_weight_grad(f32[3,4,5,5], f32[3,4,5,5]) {padding=[1], groups=4, size=[3,3]}"},
                       })

OP(conv3d,
   {
       .doc = "3-d convolution (cross-correlation) of x [n,ci,d,h,w] with weights [co,ci/groups,kd,kh,kw], zero padding",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ConvAttrs>(),
       .infer = infer_conv<3>,
       .vjp = vjp_conv<conv3d_input_grad, conv3d_weight_grad>,
       .cost = cost_conv,
       .workspace = workspace_conv<3>,
       .batch_strides = {0b01, 0b1},
       .examples =
           {"conv3d(f32[2,3,4,5,4], f32[4,3,3,3,2]) {padding=[1,1,0]}",
            "conv3d(f32[1,4,5,4,6], f32[2,2,2,3,2]) {stride=[2,1,2], padding=[0,1,1,1,1,0], dilation=[2,1,1], groups=2}"},
   })

OP(conv3d_input_grad,
   {
       .doc = "gradient of conv3d for its input, and transposed convolution: dy [n,co,od,oh,ow], weights -> [n,ci,d,h,w]",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ConvInputGradAttrs>(),
       .infer = infer_conv_input_grad<3>,
       .vjp = vjp_conv_input_grad<conv3d, conv3d_weight_grad>,
       .cost = cost_conv_input_grad,
       .workspace = workspace_conv_input_grad<3>,
       .batch_strides = {0b01, 0b1},
       .examples =
           {"conv3d_input_grad(f32[1,4,2,3,2], f32[4,1,2,3,2]) {stride=[2,1,2], padding=[0,1,1], groups=2, size=[4,3,3]}"},
   })

OP(conv3d_weight_grad,
   {
       .doc = "gradient of conv3d for its weights: dy [n,co,od,oh,ow], x [n,ci,d,h,w] -> [co,ci/groups,kd,kh,kw]",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<ConvWeightGradAttrs>(),
       .infer = infer_conv_weight_grad<3>,
       .vjp = vjp_conv_weight_grad<conv3d, conv3d_input_grad>,
       .cost = cost_conv_weight_grad,
       .workspace = workspace_conv_weight_grad<3>,
       .batch_strides = {0b11, 0b0},
       .examples =
           {"conv3d_weight_grad(f32[2,4,2,3,2], f32[2,2,4,3,3]) {stride=[2,1,2], padding=[0,1,1], groups=2, size=[2,3,2]}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Cross-correlation of x [n,ci,spatial] with w [co,ci/groups,spatial], plus a bias [co] if one is given. All have one
// floating dtype. Lists in `attrs` hold one number for all dimensions, or one for each (kernels/attrs.h).
Tensor conv1d(const Arg& x, const Tensor& w, const ConvAttrs& attrs = {});
Tensor conv1d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs = {});
Tensor conv2d(const Arg& x, const Tensor& w, const ConvAttrs& attrs = {});
Tensor conv2d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs = {});
Tensor conv3d(const Arg& x, const Tensor& w, const ConvAttrs& attrs = {});
Tensor conv3d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs = {});

// The gradients of convolutions for their two operands.
Tensor conv2d_input_grad(const Arg& dy, const Tensor& w, const ConvInputGradAttrs& attrs);
Tensor conv2d_weight_grad(const Arg& dy, const Tensor& x, const ConvWeightGradAttrs& attrs);
Tensor conv3d_input_grad(const Arg& dy, const Tensor& w, const ConvInputGradAttrs& attrs);
Tensor conv3d_weight_grad(const Arg& dy, const Tensor& x, const ConvWeightGradAttrs& attrs);

// The geometry of a transposed convolution. Lists are as in ConvAttrs.
struct ConvTransposeOptions {
  Ints stride = {1};
  Ints padding = {0};         // padding of the convolution that it transposes; the result gets smaller by it
  Ints output_padding = {0};  // rows added at the end of each dimension; less than the stride
  Ints dilation = {1};
  std::int64_t groups = 1;
};

// Transposed convolution: the gradient of a convolution for its input, as a layer. x [n,ci,spatial] with w
// [ci,co/groups,spatial] -> [n,co,spatial]. A spatial size of the result is (size - 1) stride - padding + dilation (k - 1) +
// 1 + output_padding, where `padding` counts both sides.
Tensor conv_transpose1d(const Arg& x, const Tensor& w, const ConvTransposeOptions& options = {});
Tensor conv_transpose1d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const Arg& x, const Tensor& w, const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const Arg& x, const Tensor& w, const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options = {});
#endif

}  // namespace TAPEDECK_API

#ifndef TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/pool.h>
#endif
#endif
