#include <tapedeck/engine/nn/layers.h>

#include <tapedeck/engine/nn/affine.h>
#include <tapedeck/engine/nn/conv.h>
#include <tapedeck/engine/nn/hooks.h>

#include <cmath>

namespace tapedeck {

Linear::Linear(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, LinearOptions options)
    : Module(parent, name),
      weight(parameter("weight", initial_uniform(*this, "weight", {in, out}, in))),
      bias(options.bias ? parameter("bias", initial_uniform(*this, "bias", {out}, in)) : Tensor()) {}

Tensor Linear::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return affine(x, weight, bias); });
}

Conv2d::Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, Stride stride,
               Padding padding)
    : Conv2d(parent, name, in, out, ConvOptions{.kernel = {kernel}, .stride = {stride.number}, .padding = {padding.number}}) {}

Conv2d::Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& options)
    : Module(parent, name), attrs{options.stride, options.padding, options.dilation, options.groups} {
  const ConvParameters p = conv_parameters("Conv2d", 2, in, out, options);
  weight = parameter("weight", initial_uniform(*this, "weight", p.weight, p.fan_in, std::sqrt(6.0)));
  if (options.bias) bias = parameter("bias", initial_uniform(*this, "bias", p.bias, p.fan_in));
}

Tensor Conv2d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) {
    const Tensor y = conv2d(x, weight, attrs);
    return bias.defined() ? add(y, bias) : y;
  });
}

Dropout::Dropout(Module& parent, const std::string& name, double probability) : Module(parent, name), p(probability) {}

Tensor Dropout::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return training() && p != 0 ? dropout(x, p) : x.tensor(); });
}

}  // namespace tapedeck
