// The convolution kernels: shapes from views, and the choice between oneDNN and the plain loops.
#include <tapedeck/kernels/cpu/conv.h>

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

void convolve(const KernelCall& call, ConvPass pass, const ConvShape& shape) {
  const View& out = call.outputs[0];
  if (shape.empty()) {  // sums of nothing
    for_floats(call, out.dtype, [&](auto t) {
      using T = decltype(t);
      std::fill(out.as<T>(), out.as<T>() + out.numel(), T(0));
    });
    return;
  }
  if (out.dtype == DType::f32 && convolve_onednn(pass, shape, call.inputs[0].as<float>(), call.inputs[1].as<float>(),
                                                 out.as<float>(), call.workspace, call.workspace_bytes))
    return;
  for_floats(call, out.dtype, [&](auto t) {
    using T = decltype(t);
    convolve_directly<T>(pass, shape, call.inputs[0].as<T>(), call.inputs[1].as<T>(), out.as<T>());
  });
}

}  // namespace

void conv2d(const KernelCall& call) {
  const auto& attrs = call.attributes<ConvAttrs>();
  const View &x = call.inputs[0], &w = call.inputs[1];
  convolve(call, ConvPass::forward,
           {x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], w.sizes[0], w.sizes[2], w.sizes[3], attrs.stride[0],
            attrs.stride[1], attrs.padding[0], attrs.padding[1]});
}

void conv2d_input_grad(const KernelCall& call) {
  const auto& attrs = call.attributes<ConvInputGradAttrs>();
  const View &dy = call.inputs[0], &w = call.inputs[1];
  convolve(call, ConvPass::input_grad,
           {dy.sizes[0], w.sizes[1], attrs.size[0], attrs.size[1], w.sizes[0], w.sizes[2], w.sizes[3], attrs.stride[0],
            attrs.stride[1], attrs.padding[0], attrs.padding[1]});
}

void conv2d_weight_grad(const KernelCall& call) {
  const auto& attrs = call.attributes<ConvWeightGradAttrs>();
  const View &dy = call.inputs[0], &x = call.inputs[1];
  convolve(call, ConvPass::weight_grad,
           {x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], dy.sizes[1], attrs.size[0], attrs.size[1], attrs.stride[0],
            attrs.stride[1], attrs.padding[0], attrs.padding[1]});
}

}  // namespace tapedeck::kernels::cpu
