#include <tapedeck/engine/eager/call_scope.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/grad_scaler.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck {
namespace {

// Multiplies in f32 at least, because the inverse of a scale is too small for f16.
Tensor times(const Tensor& g, const Tensor& factor) {
  const bool half = g.dtype() == DType::f16 || g.dtype() == DType::bf16;
  return cast(mul(half ? cast(g, DType::f32) : g, factor), g.dtype());
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options)
    : options_(options), scale_(scalar(options.scale)), streak_(scalar(0, DType::i64)) {
  if (!(options.scale > 0) || !(options.growth >= 1) || !(options.backoff > 0 && options.backoff <= 1) || options.interval < 1)
    throw UsageError("grad_scaler: needs scale > 0, growth >= 1, 0 < backoff <= 1 and interval >= 1");
  scale_.name("grad_scaler.scale").role(Role::statistic);
  streak_.name("grad_scaler.finite_steps").role(Role::counter);
}

Tensor GradScaler::scale_loss(const Arg& loss) const { return mul(loss, scale_); }

const Tensor* GradScaler::finite_of(const Optimizer& optimizer) const {
  for (const auto& [known, finite] : finite_)
    if (known == &optimizer) return &finite;
  return nullptr;
}

void GradScaler::unscale(Optimizer& optimizer, Site site) {
  if (finite_of(optimizer))
    throw UsageError(error_text("unscale", "the gradients are unscaled already; call update() after each step", site));
  const NoGrad no_grad;
  const Scoped<Phase> phase(thread_state().phase, Phase::update);
  const CallScope call(site);
  const Tensor inverse = div(1, scale_);
  std::vector<Tensor> grads;
  for (Tensor p : optimizer.parameters()) {
    if (!p.grad().defined()) continue;
    const Scoped<Name> path(thread_state().path, p.name());
    p.set_grad(times(p.grad(), inverse));
    grads.push_back(p.grad());
  }
  finite_.emplace_back(&optimizer, grads.empty() ? full({}, 1, DType::boolean, site) : all_finite(grads, site));
}

void GradScaler::step(Optimizer& optimizer, Site site) {
  if (!finite_of(optimizer)) unscale(optimizer, site);
  optimizer.step_if(*finite_of(optimizer), site);
}

void GradScaler::update(Site site) {
  if (finite_.empty()) throw UsageError(error_text("update", "no optimizer has stepped since the last update", site));
  const NoGrad no_grad;
  const Scoped<Phase> phase(thread_state().phase, Phase::update);
  const Scoped<Name> path(thread_state().path, Name("grad_scaler"));
  Tensor all = finite_[0].second;
  for (std::size_t i = 1; i < finite_.size(); ++i) all = logical_and(all, finite_[i].second);
  const LossScaleAttrs attrs{options_.growth, options_.backoff, options_.interval};
  const Tensor in[3] = {scale_, streak_, all};
  apply_in_place(ops::loss_scale_next, in, &attrs, site);
  finite_.clear();
}

}  // namespace tapedeck
