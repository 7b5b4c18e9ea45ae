// The net of samples/01_digits.cpp and one step of its training. tests/bench measures the same step.
#pragma once

#include <tapedeck/tapedeck.h>

#include <memory>
#include <string>
#include <vector>

namespace zoo {

using namespace tapedeck;

// A stem and residual 3x3 convolutions of one width. Most of the memory of a step holds values that backward reads.
struct DigitsNet : Module {
  static constexpr int kBlocks = 5;
  static constexpr std::int64_t kWidth = 24;
  Conv2d stem{*this, "stem", 1, kWidth, 3, Padding(1)};
  std::vector<std::unique_ptr<Conv2d>> blocks;
  Linear fc{*this, "fc", kWidth * 4 * 4, 10};
  Dropout drop1{*this, "drop1", 0.05}, drop2{*this, "drop2", 0.2};

  DigitsNet() {
    for (int i = 1; i <= kBlocks; ++i)
      blocks.push_back(std::make_unique<Conv2d>(*this, "block" + std::to_string(i), kWidth, kWidth, 3, Padding(1)));
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = relu(stem(x));
    for (auto& block : blocks) h = h + relu((*block)(h));
    h = drop1(max_pool2d(h));
    return fc(drop2(reshape(h, {-1, kWidth * 4 * 4})));
  }
};

// One training step on images x [n,1,8,8] and labels y [n]. Returns the loss.
inline Tensor train_step(DigitsNet& net, Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  const Tensor loss = cross_entropy(net(x), y);
  backward(loss);
  optimizer.step();
  optimizer.zero_grad();
  return loss;
}

}  // namespace zoo
