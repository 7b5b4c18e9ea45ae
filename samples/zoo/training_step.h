// The frame of all zoo models: makes a net and sample data, and captures one step of training.
#pragma once

#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/samples/zoo/load_model_weights.h>
#include <tapedeck/tapedeck.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace zoo {

using namespace tapedeck;

// An input of the step, and its name in the graph.
struct Sample {
  std::string name;
  Tensor value;
};

// Sample data, drawn from the current seed. In abstract mode the tensors have types and no data. Floats are normal; integers
// lie in [0, below).
Tensor sample_floats(const Shape& shape);
Tensor sample_integers(const Shape& shape, std::int64_t below, DType dtype = DType::i32);
Tensor sample_images(const ModelOptions& options, std::int64_t channels);  // [batch, channels, image, image]

// Captures one training step: forward (under autocast if options.dtype asks for it), backward and update. `loss` gets the
// inputs in the order of `samples`.
Captured capture_training(const std::string& name, const ModelOptions& options, const std::vector<Tensor>& parameters,
                          const std::vector<Sample>& samples, const std::function<Tensor(const std::vector<Tensor>&)>& loss);

// Makes the net, from the options if its constructor takes them; the parameters are drawn, or abstract, or those of the
// file options.weights. Then
// make_samples(options) makes the inputs, and loss(net, inputs) computes the loss of the captured training step:
//     record_training<Net>(
//         "lm", options,
//         [](const ModelOptions& o) { return std::vector<Sample>{{"ids", ...}, {"next", ...}}; },
//         [](Net& net, const std::vector<Tensor>& in) { return cross_entropy(net(in[0]), in[1]); });
template <class Net, class MakeSamples, class Loss>
Captured record_training(const std::string& name, const ModelOptions& options, MakeSamples make_samples, Loss loss) {
  const AbstractMode abstract(options.abstract);
  manual_seed(options.seed);
  const auto net = [&] {
    if constexpr (std::is_constructible_v<Net, const ModelOptions&>)
      return std::make_unique<Net>(options);
    else
      return std::make_unique<Net>();
  }();
  if (!options.weights.empty()) load_model_weights(*net, name, options.weights);
  if (options.device != "cpu") net->to(options.device);
  const std::vector<Sample> samples = make_samples(options);
  return capture_training(name, options, net->parameters(), samples,
                          [&](const std::vector<Tensor>& in) { return loss(*net, in); });
}

// record_training for a classifier: the inputs are x, of `shape` with the batch in front, and labels y in [0, classes). The
// loss is the cross entropy.
template <class Net>
Captured record_classifier(const std::string& name, const ModelOptions& options, const Shape& shape, std::int64_t classes) {
  return record_training<Net>(
      name, options,
      [&](const ModelOptions& o) {
        Shape all{o.batch};
        for (std::int64_t size : shape) all.sizes[all.rank++] = size;
        return std::vector<Sample>{{"x", sample_floats(all)}, {"y", sample_integers({o.batch}, classes)}};
      },
      [](Net& net, const std::vector<Tensor>& in) { return cross_entropy(net(in[0]), in[1]); });
}

}  // namespace zoo
