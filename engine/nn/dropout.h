// Layers that drop while training, and pass everything on otherwise.
#pragma once

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck TAPEDECK_API {

// Drops whole channels of x [n,c,...].
struct Dropout2d : Module {
  Dropout2d(Module& parent, const std::string& name, double p);
  Tensor operator()(const Arg& x);
  double p;
};

// For nets of selu: keeps mean and deviation.
struct AlphaDropout : Module {
  AlphaDropout(Module& parent, const std::string& name, double p);
  Tensor operator()(const Arg& x);
  double p;
};

}  // namespace TAPEDECK_API
