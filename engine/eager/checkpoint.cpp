#include <tapedeck/engine/eager/checkpoint.h>

#include <tapedeck/engine/eager/recorder.h>

#include <optional>

namespace tapedeck {

namespace {

const Tensor& mark(const Tensor& x, NodeWish wish) {
  if (!x.defined()) return x;
  Recorder& tape = *thread_state().tape;
  if (!tape.owns(*x.impl())) return x;
  const NodeId maker = tape.graph.values[tape.bound_value(*x.impl())].node;
  if (maker != kNone) tape.graph.nodes[maker].origin.wish = wish;
  return x;
}

}  // namespace

Tensor keep(const Tensor& x) { return mark(x, NodeWish::keep); }
Tensor recompute(const Tensor& x) { return mark(x, NodeWish::recompute); }

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

Tensor keep_here(const std::function<Tensor()>& fn) {
  const Scoped<std::int32_t> outside(thread_state().region, kNone);
  return fn();
}

std::vector<Tensor> keep_here(const std::function<std::vector<Tensor>()>& fn) {
  const Scoped<std::int32_t> outside(thread_state().region, kNone);
  return fn();
}

}  // namespace tapedeck
