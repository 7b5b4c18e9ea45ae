#include <tapedeck/engine/nn/containers.h>
#include <tapedeck/engine/nn/hooks.h>

#include <fmt/format.h>

namespace tapedeck {

Tensor Sequential::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) {
    Tensor y = x.tensor();
    for (const Step& step : steps_) y = step.apply(Arg(y, x.site().file, x.site().line));
    return y;
  });
}

const Module* Sequential::layer(std::size_t index) const {
  if (index >= steps_.size()) throw UsageError(fmt::format("module '{}' has no layer {} of {}", path(), index, steps_.size()));
  return steps_[index].layer.get();
}

}  // namespace tapedeck
