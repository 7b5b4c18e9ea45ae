#include <tapedeck/engine/nn/layers.h>

#include <cmath>

namespace tapedeck {

Linear::Linear(Module& parent, const std::string& name, std::int64_t in, std::int64_t out)
    : Module(parent, name),
      weight(parameter("weight", initial_uniform(*this, "weight", {in, out}, in))),
      bias(parameter("bias", initial_uniform(*this, "bias", {out}, in))) {}

Tensor Linear::operator()(const Arg& x) {
  const ModuleScope scope(*this, x.site());
  return add(matmul(x, weight), bias);
}

Conv2d::Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t padding,
               std::int64_t stride)
    : Module(parent, name),
      weight(parameter("weight", initial_uniform(*this, "weight", {out, in, kernel, kernel}, in * kernel * kernel, std::sqrt(6.0)))),
      bias(parameter("bias", initial_uniform(*this, "bias", {out, 1, 1}, in * kernel * kernel))),
      attrs{{stride, stride}, {padding, padding}} {}

Tensor Conv2d::operator()(const Arg& x) {
  const ModuleScope scope(*this, x.site());
  return add(conv2d(x, weight, attrs), bias);
}

Dropout::Dropout(Module& parent, const std::string& name, double probability) : Module(parent, name), p(probability) {}

Tensor Dropout::operator()(const Arg& x) {
  if (!training() || p == 0) return x.tensor();
  const ModuleScope scope(*this, x.site());
  return dropout(x, p);
}

}  // namespace tapedeck
