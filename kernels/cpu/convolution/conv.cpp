// The convolution kernels. They make a ConvShape from the views and choose between oneDNN, matrix products and plain loops.
#include <tapedeck/kernels/cpu/convolution/conv.h>

#include <tapedeck/kernels/checked_math.h>
#include <tapedeck/kernels/cpu/convolution/conv_plan.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/products/bf16_pairs.h>
#include <tapedeck/kernels/half.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {

std::int64_t convolution_workspace(ConvPass pass, const ConvShape& shape, DType dtype) {
  if (dtype == DType::f64) return 0;
  const std::int64_t in_f32 = shape.empty() ? 0 : conv_workspace(pass, shape);
  if (dtype == DType::f32) return in_f32;
  return limited_sum({half_scratch(shape.batch * shape.in_size()), half_scratch(shape.batch * shape.out_size()),
                      half_scratch(shape.weight_size()), in_f32});
}

namespace {

template <class T>
void fill_with_zeros(const View& out) {
  const Images<T> images(out);
  const std::int64_t n = out.sizes[0], size = n > 0 ? out.numel() / n : 0;
  for (std::int64_t i = 0; i < n; ++i) std::fill_n(images.image(i), size, T(0));
}

ConvStrides strides_of(ConvPass pass, const KernelCall& call) {
  const View &a = call.inputs[0], &b = call.inputs[1], &result = call.outputs[0];
  switch (pass) {
    case ConvPass::forward:
      return {image_stride(a), image_stride(result)};
    case ConvPass::input_grad:
      return {image_stride(result), image_stride(a)};
    case ConvPass::weight_grad:
      return {image_stride(b), image_stride(a)};
  }
  return {};
}

void convolve(const KernelCall& call, ConvPass pass, const ConvShape& shape) {
  const View &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  if (shape.empty())
    return for_floats(call, out.dtype, [&](auto t) { fill_with_zeros<decltype(t)>(out); });  // every element is an empty sum
  const ConvStrides strides = strides_of(pass, call);
  if (out.dtype == DType::f32)
    for (const auto way : {&convolve_onednn, &convolve_products})
      if (way(pass, shape, strides, a.as<float>(), b.as<float>(), out.as<float>(), call.workspace, call.workspace_bytes))
        return;
  for_floats(call, out.dtype, [&](auto t) {
    using T = decltype(t);
    convolve_directly<T>(pass, shape, strides, a.as<T>(), b.as<T>(), out.as<T>());
  });
}

// Convolves halves: bf16 by oneDNN if the processor multiplies pairs of bf16, all others as f32 copies in the workspace.
void convolve_half(const KernelCall& call, ConvPass pass, const ConvShape& shape, Kernel in_f32) {
  const View &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  if (out.dtype == DType::bf16 && multiplies_bf16_pairs() && !shape.empty() &&
      convolve_onednn_bf16(pass, shape, strides_of(pass, call), a.as<std::uint16_t>(), b.as<std::uint16_t>(),
                           out.as<std::uint16_t>(), call.workspace, call.workspace_bytes))
    return;
  KernelCall copied = call;
  copied.f32_kernel = in_f32;
  run_in_f32(copied);
}

void convolve_in(const KernelCall& call, ConvPass pass, const ConvShape& shape, Kernel kernel) {
  is_half(call.outputs[0].dtype) ? convolve_half(call, pass, shape, kernel) : convolve(call, pass, shape);
}

template <int kDims>
void forward(const KernelCall& call) {
  convolve_in(call, ConvPass::forward,
              conv_shape(kDims, call.inputs[0].sizes, call.inputs[1].sizes, call.attributes<ConvAttrs>()), forward<kDims>);
}

template <int kDims>
void input_grad(const KernelCall& call) {
  convolve_in(call, ConvPass::input_grad,
              conv_shape(kDims, call.outputs[0].sizes, call.inputs[1].sizes, call.attributes<ConvInputGradAttrs>()),
              input_grad<kDims>);
}

template <int kDims>
void weight_grad(const KernelCall& call) {
  convolve_in(call, ConvPass::weight_grad,
              conv_shape(kDims, call.inputs[1].sizes, call.outputs[0].sizes, call.attributes<ConvWeightGradAttrs>()),
              weight_grad<kDims>);
}

}  // namespace

void conv2d(const KernelCall& call) { forward<2>(call); }
void conv2d_input_grad(const KernelCall& call) { input_grad<2>(call); }
void conv2d_weight_grad(const KernelCall& call) { weight_grad<2>(call); }
void conv3d(const KernelCall& call) { forward<3>(call); }
void conv3d_input_grad(const KernelCall& call) { input_grad<3>(call); }
void conv3d_weight_grad(const KernelCall& call) { weight_grad<3>(call); }

}  // namespace tapedeck::kernels::cpu
