#include <tapedeck/engine/eager/checkpoint.h>

#include <optional>

namespace tapedeck {

std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& fn, const std::string& name) {
  std::vector<Tensor> results;
  checkpoint([&]() -> Tensor {
    std::optional<PathScope> path;
    if (!name.empty()) path.emplace(name);
    results = fn();
    return {};
  });
  return results;
}

Tensor checkpoint(const std::function<Tensor()>& fn, const std::string& name) {
  return checkpoint([&] { return std::vector<Tensor>{fn()}; }, name)[0];
}

}  // namespace tapedeck
