#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/kernels/cpu/conv.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

// Output size of a window sliding over `size` padded by `padding` on both sides; -1 if the window does not fit.
std::int64_t windows(std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  const std::int64_t room = size + 2 * padding - window;
  return room < 0 ? -1 : room / stride + 1;
}

void check_geometry(const Infer& f, const Ints& stride, const Ints& padding) {
  if (stride.size != 2 || padding.size != 2) f.fail("stride and padding take two numbers, {height, width}");
  for (int i = 0; i < 2; ++i) {
    if (stride[i] < 1 || stride[i] > (1 << 20)) f.fail("stride must be at least 1");
    if (padding[i] < 0 || padding[i] > (1 << 20)) f.fail("padding must not be negative");
  }
}

void require_nchw(const Infer& f, const Type& a, const Type& b) {
  if (a.shape.rank != 4 || b.shape.rank != 4) f.fail(fmt::format("operands need four dimensions: {} and {}", to_string(a), to_string(b)));
  if (a.dtype != b.dtype) f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(a), to_string(b)));
  infer_require_float(f, a);
}

// The type of conv2d(x, w), or f.fail.
Type conv_type(const Infer& f, const Type& x, const Type& w, const Ints& stride, const Ints& padding) {
  check_geometry(f, stride, padding);
  if (x.shape[1] != w.shape[1]) f.fail(fmt::format("channels differ: x {} has {}, weights {} take {}", to_string(x), x.shape[1], to_string(w), w.shape[1]));
  const std::int64_t oh = windows(x.shape[2], w.shape[2], stride[0], padding[0]);
  const std::int64_t ow = windows(x.shape[3], w.shape[3], stride[1], padding[1]);
  if (oh < 0 || ow < 0 || w.shape[2] < 1 || w.shape[3] < 1) f.fail(fmt::format("the window of {} does not fit into {}", to_string(w), to_string(x)));
  return {x.dtype, {x.shape[0], w.shape[0], oh, ow}};
}

void infer_conv2d(Infer& f) {
  const auto& a = f.attributes<ConvAttrs>();
  require_nchw(f, f.inputs[0], f.inputs[1]);
  f.outputs.assign(1, conv_type(f, f.inputs[0], f.inputs[1], a.stride, a.padding));
}

void infer_conv2d_input_grad(Infer& f) {
  const auto& a = f.attributes<ConvInputGradAttrs>();
  const Type &dy = f.inputs[0], &w = f.inputs[1];
  require_nchw(f, dy, w);
  if (a.size.size != 2 || a.size[0] < 0 || a.size[1] < 0) f.fail("size takes the input's {height, width}");
  const Type x{dy.dtype, {dy.shape[0], w.shape[1], a.size[0], a.size[1]}};
  if (conv_type(f, x, w, a.stride, a.padding) != dy)
    f.fail(fmt::format("the gradient {} does not fit weights {} and input size {}x{}", to_string(dy), to_string(w), a.size[0], a.size[1]));
  f.outputs.assign(1, x);
}

void infer_conv2d_weight_grad(Infer& f) {
  const auto& a = f.attributes<ConvWeightGradAttrs>();
  const Type &dy = f.inputs[0], &x = f.inputs[1];
  require_nchw(f, dy, x);
  if (a.size.size != 2 || a.size[0] < 0 || a.size[1] < 0) f.fail("size takes the kernel's {height, width}");
  const Type w{dy.dtype, {dy.shape[1], x.shape[1], a.size[0], a.size[1]}};
  if (conv_type(f, x, w, a.stride, a.padding) != dy)
    f.fail(fmt::format("the gradient {} does not fit input {} and kernel size {}x{}", to_string(dy), to_string(x), a.size[0], a.size[1]));
  f.outputs.assign(1, w);
}

void infer_max_pool2d(Infer& f) {
  const auto& a = f.attributes<PoolAttrs>();
  const Type& x = f.inputs[0];
  if (x.shape.rank != 4) f.fail(fmt::format("needs four dimensions, got {}", to_string(x)));
  infer_require_float(f, x);
  if (a.window.size != 2 || a.window[0] < 1 || a.window[1] < 1) f.fail("window takes {height, width}, at least 1");
  check_geometry(f, a.stride, {0, 0});
  const std::int64_t oh = windows(x.shape[2], a.window[0], a.stride[0], 0), ow = windows(x.shape[3], a.window[1], a.stride[1], 0);
  if (oh < 0 || ow < 0) f.fail(fmt::format("the window does not fit into {}", to_string(x)));
  f.outputs.assign(1, Type{x.dtype, {x.shape[0], x.shape[1], oh, ow}});
}

// The three convolutions do the same multiplications: one per element of y and tap of w.
Cost cost_of(std::span<const Type> in, std::span<const Type> out, const Type& y, const Type& w) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = 2.0 * static_cast<double>(y.numel()) * static_cast<double>(w.shape[1] * w.shape[2] * w.shape[3]);
  return cost;
}
Cost cost_conv2d(std::span<const Type> in, std::span<const Type> out, const void*) { return cost_of(in, out, out[0], in[1]); }
Cost cost_conv2d_input_grad(std::span<const Type> in, std::span<const Type> out, const void*) { return cost_of(in, out, in[0], in[1]); }
Cost cost_conv2d_weight_grad(std::span<const Type> in, std::span<const Type> out, const void*) { return cost_of(in, out, in[0], out[0]); }

kernels::cpu::ConvShape conv_shape(const Type& x, const Type& w, const Ints& stride, const Ints& padding) {
  return {x.shape[0], x.shape[1], x.shape[2], x.shape[3], w.shape[0], w.shape[2], w.shape[3], stride[0], stride[1], padding[0], padding[1]};
}

std::int64_t workspace_conv2d(std::span<const Type> in, std::span<const Type>, const void* attrs) {
  const auto& a = *static_cast<const ConvAttrs*>(attrs);
  return kernels::cpu::conv2d_workspace(conv_shape(in[0], in[1], a.stride, a.padding), in[0].dtype);
}

std::int64_t workspace_conv2d_input_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  const auto& a = *static_cast<const ConvInputGradAttrs*>(attrs);
  return kernels::cpu::conv2d_input_grad_workspace(conv_shape(out[0], in[1], a.stride, a.padding), in[0].dtype);
}

std::int64_t workspace_conv2d_weight_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  const auto& a = *static_cast<const ConvWeightGradAttrs*>(attrs);
  return kernels::cpu::conv2d_weight_grad_workspace(conv_shape(in[1], out[0], a.stride, a.padding), in[0].dtype);
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/conv.h>
