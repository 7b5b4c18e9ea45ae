#include <tapedeck/engine/nn/dropout.h>
#include <tapedeck/engine/nn/hooks.h>

namespace tapedeck {

Dropout2d::Dropout2d(Module& parent, const std::string& name, double probability) : Module(parent, name), p(probability) {}

Tensor Dropout2d::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return training() && p != 0 ? dropout2d(x, p) : x.tensor(); });
}

AlphaDropout::AlphaDropout(Module& parent, const std::string& name, double probability)
    : Module(parent, name), p(probability) {}

Tensor AlphaDropout::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return training() && p != 0 ? alpha_dropout(x, p) : x.tensor(); });
}

}  // namespace tapedeck
