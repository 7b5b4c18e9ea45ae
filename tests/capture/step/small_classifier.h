// A small classifier, its data and one step of its training, for tests of captured steps.
#pragma once

#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <cstdint>
#include <vector>

namespace tapedeck::testing {

struct SmallClassifier : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

// The inputs of step `step`: x [batch,6], and labels [batch] in [0,4).
inline Tensor sample_x(int step, std::int64_t batch = 8) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < batch * 6; ++i) values.push_back(static_cast<float>((i * 37 + step * 11) % 17) / 8 - 1);
  return from_vector(values, {batch, 6});
}
inline Tensor sample_y(int step, std::int64_t batch = 8) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < batch; ++i) values.push_back(static_cast<std::int32_t>((i + step) % 4));
  return from_vector(values, {batch});
}

// Forward, backward and update on inputs x and labels; returns the loss.
template <class Net>
std::vector<Tensor> train_classifier(Net& net, Optimizer& optimizer, const std::vector<Tensor>& in) {
  const Tensor loss = cross_entropy(net(in[0]), in[1]);
  backward(loss);
  optimizer.step();
  optimizer.zero_grad();
  return {loss};
}

}  // namespace tapedeck::testing
