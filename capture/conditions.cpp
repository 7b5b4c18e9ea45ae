#include <tapedeck/capture/conditions.h>

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/tensor_impl.h>
#include <tapedeck/engine/thread_state.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

Surroundings Surroundings::now() {
  const ThreadState& state = thread_state();
  Surroundings s;
  s.grad_enabled = state.grad_enabled;
  s.autocast = state.autocast;
  s.autocast_dtype = state.autocast_dtype;
  s.path = state.path;
  s.training = training_modes();
  s.rng = rng_state().impl();
  return s;
}

std::string Surroundings::difference(const Surroundings& then, bool draws) const {
  if (grad_enabled != then.grad_enabled) return grad_enabled ? "gradients are wanted now, they were not" : "no gradients are wanted now (NoGrad), they were";
  if (autocast != then.autocast || (autocast && autocast_dtype != then.autocast_dtype)) return "autocast is another than it was";
  if (training != then.training) return "modules were switched between training and not";
  if (path != then.path) return fmt::format("it is called under the path '{}', it was under '{}'", path.view(), then.path.view());
  if (draws && rng != then.rng) return "the random state is another thread's";
  return "";
}

bool draws(const Captured& captured) {
  return std::any_of(captured.state.begin(), captured.state.end(), [](const Tensor& t) { return t.role() == Role::rng; });
}

std::string misfit(const Captured& captured, const std::vector<Tensor>& inputs) {
  for (const TensorUse& use : captured.uses) {
    const bool is_input = use.input != kNone;
    const Tensor& t = is_input ? inputs[static_cast<std::size_t>(use.input)] : use.tensor;
    const std::string name = is_input ? captured.graph.value_name(use.input) : t.name().str();
    const bool needs = t.impl()->requires_grad || (is_input && thread_state().grad_enabled && t.requires_grad());
    if (needs != use.requires_grad) return fmt::format("'{}' {}", name, needs ? "needs a gradient now, it did not" : "needs no gradient now, it did");
    if (t.grad_request() != use.request) return fmt::format("the grad_request of '{}' is another than it was", name);
    if ((t.impl()->extra ? t.impl()->extra->hooks.size() : 0) != use.hooks) return fmt::format("'{}' has other gradient hooks than it had", name);
    if (use.grad == TensorUse::Grad::absent && t.grad().defined()) return fmt::format("'{}' has a gradient already, it had none", name);
    if (use.grad == TensorUse::Grad::present && !t.grad().defined()) return fmt::format("'{}' has no gradient, it had one", name);
  }
  return "";
}

void Watchlist::note_handles(const Captured& captured) {
  handles_.clear();
  for (const Tensor& t : captured.state) handles_.push_back(t.impl()->refs.load());
}

void Watchlist::note(const Captured& captured) {
  note_handles(captured);
  versions_.clear();
  for (const Tensor& t : captured.constants) versions_.push_back(t.impl()->storage ? t.impl()->storage->version : 0);
}

std::string Watchlist::suspicion(const Captured& captured) const {
  for (std::size_t i = 0; i < captured.constants.size(); ++i) {
    const Tensor& t = captured.constants[i];
    if (t.impl()->storage && t.impl()->storage->version != versions_[i])
      return fmt::format("the constant '{}' {} was modified", t.name().view(), to_string(t.type()));
  }
  for (std::size_t i = 0; i < captured.state.size(); ++i)
    if (captured.state[i].impl()->refs.load() < handles_[i])
      return fmt::format("a handle to the state '{}' was let go: it may have been replaced", captured.state[i].name().view());
  return "";
}

}  // namespace tapedeck
