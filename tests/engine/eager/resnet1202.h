// The residual net of 1,202 layers: a convolution, 600 blocks of two convolutions, and a product.
#pragma once

#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <deque>
#include <string>

namespace tapedeck::test {

struct ResNet1202 : Module {
  Conv2d first;
  std::deque<Conv2d> convs;
  std::deque<BatchNorm> norms;
  Linear last;

  explicit ResNet1202(std::int64_t channels)
      : first(*this, "first", 3, channels, 3, Padding(1)), last(*this, "last", channels, 10) {
    for (int i = 0; i < 1200; ++i) {
      convs.emplace_back(*this, "conv" + std::to_string(i), channels, channels, 3, Padding(1));
      norms.emplace_back(*this, "norm" + std::to_string(i), channels);
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor h = relu(first(x));
    for (std::size_t i = 0; i < convs.size(); i += 2) h = relu(add(h, norms[i + 1](convs[i + 1](relu(norms[i](convs[i](h)))))));
    return last(mean(h, {2, 3}));
  }
};

}  // namespace tapedeck::test
