#include <tapedeck/samples/zoo/training_step.h>

#include <random>

namespace zoo {

using namespace tapedeck;

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, std::vector<Tensor> parameters) {
  if (name == "sgd") return std::make_unique<Sgd>(std::move(parameters), SgdOptions{.lr = 0.01});
  if (name == "adamw") return std::make_unique<AdamW>(std::move(parameters), AdamWOptions{.lr = 1e-3});
  throw UsageError("unknown optimizer '" + name + "': sgd or adamw");
}

Tensor sample_input(const Step& step, const ModelOptions& options) {
  Shape shape;
  shape.sizes[shape.rank++] = options.batch;
  for (std::int64_t s : step.input) shape.sizes[shape.rank++] = s;
  return normal(shape);
}

Tensor sample_labels(const Step& step, const ModelOptions& options) {
  if (options.abstract) return abstract_tensor({DType::i32, {options.batch}});
  std::mt19937 draw(static_cast<unsigned>(options.seed));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(options.batch));
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(draw() % static_cast<unsigned>(step.classes));
  return from_vector(labels, {options.batch});
}

}  // namespace zoo
