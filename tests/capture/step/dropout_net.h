// A small net with dropout, which several tests of captured steps train.
#pragma once

#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck::testing {

struct DropoutNet : Module {
  Linear in{*this, "in", 3, 8}, out{*this, "out", 8, 2};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return out(drop(tanh(in(x)))); }
};

}  // namespace tapedeck::testing
