// What all zoo models share: capture one training step of a classifier.
#pragma once

#include <tapedeck/capture/models.h>
#include <tapedeck/tapedeck.h>

#include <functional>
#include <memory>

namespace zoo {

using tapedeck::Tensor;

// Makes the net (its parameters are drawn on construction, or abstract), then captures forward, backward and update on sample data:
// x of `input` with the batch in front, labels below `classes`.
struct Step {
  std::string name;
  tapedeck::Shape input;
  std::int64_t classes = 10;
};

template <class Net>
tapedeck::Captured record_step(const Step& step, const tapedeck::ModelOptions& options);

std::unique_ptr<tapedeck::Optimizer> make_optimizer(const std::string& name, std::vector<Tensor> parameters);
Tensor sample_input(const Step& step, const tapedeck::ModelOptions& options);
Tensor sample_labels(const Step& step, const tapedeck::ModelOptions& options);

template <class Net>
tapedeck::Captured record_step(const Step& step, const tapedeck::ModelOptions& options) {
  const tapedeck::AbstractMode abstract(options.abstract);
  tapedeck::manual_seed(options.seed);
  Net net;
  const auto optimizer = make_optimizer(options.optimizer, net.parameters());
  const Tensor x = sample_input(step, options), y = sample_labels(step, options);
  tapedeck::next_step();
  tapedeck::Capture capture(step.name);
  const Tensor xs = capture.input("x", x), ys = capture.input("y", y);
  const Tensor loss = tapedeck::cross_entropy(net(xs), ys);
  tapedeck::backward(loss);
  optimizer->step();
  optimizer->zero_grad();
  capture.output("loss", loss);
  return capture.finish();
}

}  // namespace zoo
