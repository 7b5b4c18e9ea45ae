// Layers that drop elements while training. In evaluation they return x unchanged.
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

// Dropout for networks with selu: it keeps the mean and the deviation.
struct AlphaDropout : Module {
  AlphaDropout(Module& parent, const std::string& name, double p);
  Tensor operator()(const Arg& x);
  double p;
};

}  // namespace TAPEDECK_API
