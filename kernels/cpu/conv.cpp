// The convolution kernels: shapes from views, and the choice between oneDNN, matrix products and the plain loops.
#include <tapedeck/kernels/cpu/conv.h>

#include <tapedeck/kernels/cpu/conv_plan.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {

std::int64_t convolution_workspace(ConvPass pass, const ConvShape& shape, DType dtype) {
  return dtype != DType::f32 || shape.empty() ? 0 : conv_workspace(pass, shape);
}

namespace {

void convolve(const KernelCall& call, ConvPass pass, const ConvShape& shape) {
  const View &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  if (shape.empty()) {  // sums of nothing
    for_floats(call, out.dtype, [&](auto t) {
      using T = decltype(t);
      std::fill(out.as<T>(), out.as<T>() + out.numel(), T(0));
    });
    return;
  }
  if (out.dtype == DType::f32)
    for (const auto way : {&convolve_onednn, &convolve_products})
      if (way(pass, shape, a.as<float>(), b.as<float>(), out.as<float>(), call.workspace, call.workspace_bytes)) return;
  for_floats(call, out.dtype, [&](auto t) {
    using T = decltype(t);
    convolve_directly<T>(pass, shape, a.as<T>(), b.as<T>(), out.as<T>());
  });
}

template <int kDims>
void forward(const KernelCall& call) {
  convolve(call, ConvPass::forward, conv_shape(kDims, call.inputs[0].sizes, call.inputs[1].sizes, call.attributes<ConvAttrs>()));
}

template <int kDims>
void input_grad(const KernelCall& call) {
  convolve(call, ConvPass::input_grad,
           conv_shape(kDims, call.outputs[0].sizes, call.inputs[1].sizes, call.attributes<ConvInputGradAttrs>()));
}

template <int kDims>
void weight_grad(const KernelCall& call) {
  convolve(call, ConvPass::weight_grad,
           conv_shape(kDims, call.inputs[1].sizes, call.outputs[0].sizes, call.attributes<ConvWeightGradAttrs>()));
}

}  // namespace

void conv2d(const KernelCall& call) { forward<2>(call); }
void conv2d_input_grad(const KernelCall& call) { input_grad<2>(call); }
void conv2d_weight_grad(const KernelCall& call) { weight_grad<2>(call); }
void conv3d(const KernelCall& call) { forward<3>(call); }
void conv3d_input_grad(const KernelCall& call) { input_grad<3>(call); }
void conv3d_weight_grad(const KernelCall& call) { weight_grad<3>(call); }

}  // namespace tapedeck::kernels::cpu
