#include <tapedeck/engine/eager/call_scope.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/gradients.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck {
namespace {

// As long as a Between lives, nodes are recorded in the update phase and without gradient history.
struct Between {
  NoGrad no_grad;
  Scoped<Phase> phase{thread_state().phase, Phase::update};
  CallScope call;
  explicit Between(Site site) : call(site) {}
};

Tensor norm_of(const std::vector<Tensor>& parameters, Site site) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) grads.push_back(p.grad());
  return grads.empty() ? scalar(0) : global_norm(grads, site);
}

template <class F>
void replace_gradients(const std::vector<Tensor>& parameters, F&& f) {
  for (Tensor p : parameters) {
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    const Scoped<Name> path(thread_state().path, p.name());
    p.set_grad(cast(f(g), g.dtype()));
  }
}

}  // namespace

Tensor grad_norm(const std::vector<Tensor>& parameters, Site site) {
  const Between between(site);
  return norm_of(parameters, site);
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, Site site) {
  if (!(max_norm >= 0)) throw UsageError("clip_grad_norm_: max_norm must be at least 0");
  const Between between(site);
  const Tensor norm = norm_of(parameters, site);
  const Tensor scale = minimum(div(max_norm, add(norm, 1e-6)), 1);
  replace_gradients(parameters, [&](const Tensor& g) { return mul(g, scale); });
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double limit, Site site) {
  if (!(limit >= 0)) throw UsageError("clip_grad_value_: the limit must be at least 0");
  const Between between(site);
  replace_gradients(parameters, [&](const Tensor& g) { return minimum(maximum(g, -limit), limit); });
}

}  // namespace tapedeck
