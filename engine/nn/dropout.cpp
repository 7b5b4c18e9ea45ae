#include <tapedeck/engine/nn/dropout.h>

namespace tapedeck {

Dropout2d::Dropout2d(Module& parent, const std::string& name, double probability) : Module(parent, name), p(probability) {}

Tensor Dropout2d::operator()(const Arg& x) {
  if (!training() || p == 0) return x.tensor();
  const ModuleScope scope(*this, x.site());
  return dropout2d(x, p);
}

AlphaDropout::AlphaDropout(Module& parent, const std::string& name, double probability)
    : Module(parent, name), p(probability) {}

Tensor AlphaDropout::operator()(const Arg& x) {
  if (!training() || p == 0) return x.tensor();
  const ModuleScope scope(*this, x.site());
  return alpha_dropout(x, p);
}

}  // namespace tapedeck
