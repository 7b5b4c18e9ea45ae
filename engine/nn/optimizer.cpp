#include <tapedeck/engine/nn/optimizer.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/thread_state.h>

#include <fmt/format.h>

namespace tapedeck {

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr) : parameters_(std::move(parameters)) {
  for (const Tensor& p : parameters_)
    if (!p.requires_grad()) throw UsageError(fmt::format("optimizer: '{}' does not require a gradient", p.name().view()));
  set_lr(lr);
}

void Optimizer::set_lr(double lr) {
  if (lr_.defined() && !lr_.abstract()) {  // the same tensor: a captured step that reads it sees the new rate
    *static_cast<float*>(lr_.mutable_data()) = static_cast<float>(lr);
    return;
  }
  lr_ = scalar(lr);
  lr_.name("lr").role(Role::input);  // a capture takes it as an input
}

void Optimizer::set_lr(const Tensor& lr) {
  if (lr.type() != Type{DType::f32, {}}) throw TypeError(fmt::format("[set_lr] the learning rate must be f32[], not {}", to_string(lr.type())));
  lr_ = lr;
}

void Optimizer::step(Site site) {
  ThreadState& state = thread_state();
  const NoGrad no_grad;
  Scoped<Phase> phase(state.phase, Phase::update);
  before_update(site);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor g = parameters_[i].grad();
    if (!g.defined()) continue;
    const Scoped<Name> path(state.path, parameters_[i].name());
    update(i, parameters_[i], g, site);
  }
  next_step(site);
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad(Tensor());
}

namespace {

// Optimizer state shaped like a parameter: zeros, named "fc1.weight.m".
Tensor moment_of(const Tensor& parameter, const char* suffix) {
  Tensor m;
  if (parameter.abstract()) {
    m = abstract_tensor(parameter.type());
  } else {
    const std::vector<unsigned char> zero(static_cast<std::size_t>(parameter.bytes()));
    m = from_bytes(parameter.type(), zero.data());
  }
  m.name(fmt::format("{}.{}", parameter.name().view(), suffix)).role(Role::moment);
  return m;
}

}  // namespace

Sgd::Sgd(std::vector<Tensor> parameters, SgdOptions options) : Optimizer(std::move(parameters), options.lr), options_(options) {
  if (options_.momentum != 0)
    for (const Tensor& p : parameters_) velocity_.push_back(moment_of(p, "velocity"));
}

void Sgd::update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) {
  const SgdAttrs attrs{options_.momentum, options_.weight_decay};
  if (velocity_.empty()) {
    const Tensor in[3] = {parameter, contiguous(grad), lr()};
    apply_in_place(ops::sgd, in, &attrs, site);
  } else {
    const Tensor in[4] = {parameter, contiguous(grad), velocity_[index], lr()};
    apply_in_place(ops::sgd_momentum, in, &attrs, site);
  }
}

AdamW::AdamW(std::vector<Tensor> parameters, AdamWOptions options) : Optimizer(std::move(parameters), options.lr), options_(options) {
  for (const Tensor& p : parameters_) {
    m_.push_back(moment_of(p, "m"));
    v_.push_back(moment_of(p, "v"));
  }
  count_ = scalar(0, DType::i64);
  count_.name("adamw.steps").role(Role::counter);
}

void AdamW::before_update(Site site) {
  const Scoped<Name> path(thread_state().path, Name("adamw"));
  const Tensor in[1] = {count_};
  apply_in_place(ops::count_next, in, nullptr, site);
}

void AdamW::update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) {
  const AdamAttrs attrs{options_.beta1, options_.beta2, options_.eps, options_.weight_decay};
  const Tensor in[6] = {parameter, contiguous(grad), m_[index], v_[index], count_, lr()};
  apply_in_place(ops::adamw, in, &attrs, site);
}

}  // namespace tapedeck
