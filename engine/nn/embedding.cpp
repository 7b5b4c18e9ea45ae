#include <tapedeck/engine/nn/embedding.h>

#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/ops/index.h>

namespace tapedeck {

Embedding::Embedding(Module& parent, const std::string& name, std::int64_t rows, std::int64_t size, double deviation)
    : Module(parent, name), weight(parameter("weight", initial_normal(*this, "weight", {rows, size}, deviation))) {}

Tensor Embedding::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Tensor& ids) { return embedding(weight, ids); });
}

}  // namespace tapedeck
