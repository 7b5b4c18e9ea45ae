#include <tapedeck/samples/zoo/training_step.h>

namespace zoo {

namespace {

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::vector<Tensor>& parameters) {
  if (name == "sgd") return std::make_unique<Sgd>(parameters, SgdOptions{.lr = 0.01});
  if (name == "adamw") return std::make_unique<AdamW>(parameters, AdamWOptions{.lr = 1e-3});
  throw UsageError("unknown optimizer '" + name + "': sgd or adamw");
}

}  // namespace

Tensor sample_floats(const Shape& shape) { return normal(shape); }

Tensor sample_integers(const Shape& shape, std::int64_t below, DType dtype) { return randint(0, below, shape, dtype); }

Tensor sample_images(const ModelOptions& options, std::int64_t channels) {
  return sample_floats({options.batch, channels, options.image, options.image});
}

Captured capture_training(const std::string& name, const ModelOptions& options, const std::vector<Tensor>& parameters,
                          const std::vector<Sample>& samples, const std::function<Tensor(const std::vector<Tensor>&)>& loss) {
  const auto optimizer = make_optimizer(options.optimizer, parameters);
  std::vector<Tensor> values;
  for (const Sample& s : samples) values.push_back(options.device == "cpu" ? s.value : to_device(s.value, options.device));
  next_step();
  Capture capture(name);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < samples.size(); ++i) inputs.push_back(capture.input(samples[i].name, values[i]));
  const Tensor result = [&] {
    const Autocast autocast(options.dtype == "f16" ? DType::f16 : DType::bf16,
                            options.dtype == "f16" || options.dtype == "bf16");
    return loss(inputs);
  }();
  backward(result);
  optimizer->step();
  optimizer->zero_grad();
  capture.output("loss", result);
  return capture.finish();
}

}  // namespace zoo
