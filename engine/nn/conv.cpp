// Convolution layers: checks options, makes parameters, and calls the op. A transposed layer checks its options as a
// convolution and then swaps the channel dimensions of the weights.
#include <tapedeck/engine/nn/conv.h>
#include <tapedeck/engine/nn/hooks.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

std::int64_t item(const Ints& list, int i) { return list.size == 1 ? list[0] : list[i]; }

ConvOptions as_conv(const ConvTransposeLayerOptions& o) {
  return {o.kernel, o.stride, o.padding, o.dilation, o.groups, o.bias};
}
ConvTransposeOptions as_call(const ConvTransposeLayerOptions& o) {
  return {o.stride, o.padding, o.output_padding, o.dilation, o.groups};
}

// The parameters of a transposed layer. The kernel is larger than the stride by some factor in each dimension. An output
// sums, on average, this factor of the inputs.
ConvParameters transposed_parameters(const char* layer, int dims, std::int64_t in, std::int64_t out,
                                     const ConvTransposeLayerOptions& o) {
  ConvParameters p = conv_parameters(layer, dims, in, out, as_conv(o));
  p.weight[0] = in, p.weight[1] = out / o.groups;
  for (int i = 0; i < dims; ++i)
    if (i < o.stride.size || o.stride.size == 1) p.fan_in /= std::max<std::int64_t>(item(o.stride, i), 1);
  p.fan_in = std::max<std::int64_t>(p.fan_in, 1);
  return p;
}

// Makes the weight and the bias of a layer. `make` registers one parameter by name.
template <class Layer, class Make>
void make_parameters(Layer& layer, const ConvParameters& p, bool bias, Make&& make) {
  layer.weight = make("weight", initial_uniform(layer, "weight", p.weight, p.fan_in, std::sqrt(6.0)));
  if (bias) layer.bias = make("bias", initial_uniform(layer, "bias", p.bias, p.fan_in));
}

Tensor biased(const Tensor& y, const Tensor& bias) { return bias.defined() ? add(y, bias) : y; }

}  // namespace

ConvParameters conv_parameters(const char* layer, int dims, std::int64_t in, std::int64_t out, const ConvOptions& options) {
  if (in < 1 || out < 1 || options.groups < 1 || in % options.groups != 0 || out % options.groups != 0)
    throw UsageError(
        error_text(layer, fmt::format("{} channels in and {} out do not divide into {} groups", in, out, options.groups), {}));
  if (options.kernel.size != 1 && options.kernel.size != dims)
    throw UsageError(
        error_text(layer,
                   fmt::format("kernel takes {}, got {}", dims == 1 ? "one number" : fmt::format("1 or {} numbers", dims),
                               options.kernel.size),
                   {}));
  ConvParameters p;
  p.weight.rank = dims + 2, p.bias.rank = dims + 1;
  p.weight[0] = out, p.weight[1] = in / options.groups, p.bias[0] = out;
  p.fan_in = in / options.groups;
  for (int i = 0; i < dims; ++i) {
    const std::int64_t k = item(options.kernel, i);
    if (k < 1) throw UsageError(error_text(layer, "kernel must be at least 1", {}));
    p.weight[2 + i] = k, p.bias[1 + i] = 1;
    p.fan_in *= k;
  }
  return p;
}

Conv1d::Conv1d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& o)
    : Module(parent, name), attrs{o.stride, o.padding, o.dilation, o.groups} {
  make_parameters(*this, conv_parameters("Conv1d", 1, in, out, o), o.bias,
                  [&](const char* n, const Tensor& t) { return parameter(n, t); });
}
Tensor Conv1d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return biased(conv1d(x, weight, attrs), bias); });
}

Conv3d::Conv3d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& o)
    : Module(parent, name), attrs{o.stride, o.padding, o.dilation, o.groups} {
  make_parameters(*this, conv_parameters("Conv3d", 3, in, out, o), o.bias,
                  [&](const char* n, const Tensor& t) { return parameter(n, t); });
}
Tensor Conv3d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return biased(conv3d(x, weight, attrs), bias); });
}

ConvTranspose1d::ConvTranspose1d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                                 const ConvTransposeLayerOptions& o)
    : Module(parent, name), options(as_call(o)) {
  make_parameters(*this, transposed_parameters("ConvTranspose1d", 1, in, out, o), o.bias,
                  [&](const char* n, const Tensor& t) { return parameter(n, t); });
}
Tensor ConvTranspose1d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return biased(conv_transpose1d(x, weight, options), bias); });
}

ConvTranspose2d::ConvTranspose2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                                 const ConvTransposeLayerOptions& o)
    : Module(parent, name), options(as_call(o)) {
  make_parameters(*this, transposed_parameters("ConvTranspose2d", 2, in, out, o), o.bias,
                  [&](const char* n, const Tensor& t) { return parameter(n, t); });
}
Tensor ConvTranspose2d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return biased(conv_transpose2d(x, weight, options), bias); });
}

ConvTranspose3d::ConvTranspose3d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                                 const ConvTransposeLayerOptions& o)
    : Module(parent, name), options(as_call(o)) {
  make_parameters(*this, transposed_parameters("ConvTranspose3d", 3, in, out, o), o.bias,
                  [&](const char* n, const Tensor& t) { return parameter(n, t); });
}
Tensor ConvTranspose3d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return biased(conv_transpose3d(x, weight, options), bias); });
}

}  // namespace tapedeck
