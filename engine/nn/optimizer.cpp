// Optimizers: groups of parameters with a learning rate each, moments and step counters as named state, and one call of an op
// for each parameter and step.
//
//       AdamW, parameter fc1.weight:    adamw(fc1.weight, gradient, fc1.weight.m, fc1.weight.v, adamw.steps, lr)  in place
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/nn/optimizer.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

// The dtype of a group's learning rate. A rate in f32 would round the steps of f64 parameters to f32.
DType rate_dtype(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    if (p.dtype() == DType::f64) return DType::f64;
  return DType::f32;
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr) { add_group(std::move(parameters), lr); }

void Optimizer::add_group(std::vector<Tensor> parameters, double lr) {
  const std::size_t group = lrs_.size();
  const DType rate = rate_dtype(parameters);
  for (Tensor& p : parameters) {
    if (!is_floating(p.dtype()))
      throw UsageError(
          fmt::format("optimizer: '{}' is {}, and integers have no gradient", p.name().view(), to_string(p.type())));
    for (const Tensor& known : parameters_)
      if (known.impl() == p.impl()) throw UsageError(fmt::format("optimizer: '{}' is listed twice", p.name().view()));
    parameters_.push_back(std::move(p));
    groups_.push_back(group);
    moments_.emplace_back();
  }
  lrs_.push_back(scalar(lr, rate));
  lrs_.back().name(group == 0 ? "lr" : fmt::format("lr.{}", group)).role(Role::input);  // a capture takes the rate as an input
}

// ---- learning rates ----

const Tensor& Optimizer::lr(std::size_t group) const {
  if (group >= lrs_.size()) throw UsageError(fmt::format("optimizer: no group {} of {}", group, lrs_.size()));
  return lrs_[group];
}

void Optimizer::set_lr(double rate, std::size_t group) {
  Tensor own = lr(group);
  if (own.abstract()) {
    lrs_[group] = scalar(rate, own.dtype());
    lrs_[group].name("lr").role(Role::input);
  } else if (own.dtype() == DType::f64) {  // the same tensor, so a captured step that reads it sees the new rate
    *static_cast<double*>(own.mutable_data()) = rate;
  } else {
    *static_cast<float*>(own.mutable_data()) = static_cast<float>(rate);
  }
}

void Optimizer::set_lr(const Tensor& rate, std::size_t group) {
  if (rate.type() != Type{DType::f32, {}} && rate.type() != Type{DType::f64, {}})
    throw TypeError(
        error_text("set_lr", fmt::format("the learning rate must be f32[] or f64[], not {}", to_string(rate.type())), {}));
  lr(group);
  lrs_[group] = rate;
}

void Optimizer::set_lr(double rate) {
  for (std::size_t g = 0; g < lrs_.size(); ++g) set_lr(rate, g);
}

void Optimizer::set_lr(const Tensor& rate) {
  for (std::size_t g = 0; g < lrs_.size(); ++g) set_lr(rate, g);
}

// ---- state ----

namespace {

// Zeros with the type of a parameter. The name is, for example, "fc1.weight.m".
Tensor moment_of(const Tensor& parameter, const char* suffix) {
  Tensor m;
  if (parameter.abstract()) {
    m = abstract_tensor(parameter.type());
  } else {
    const std::vector<unsigned char> zero(static_cast<std::size_t>(parameter.bytes()) + 1);
    m = from_bytes(parameter.type(), zero.data());
    if (const EagerDevice* const device = parameter.impl()->storage->device) m = to_device(m, device->name()).detach();
  }
  m.name(fmt::format("{}.{}", parameter.name().view(), suffix)).role(Role::moment);
  return m;
}

}  // namespace

const Tensor& Optimizer::moment(std::size_t index, const char* suffix) {
  return moments_[index].emplace_back(moment_of(parameters_[index], suffix));
}

void Optimizer::count_steps(const char* name) {
  count_ = scalar(0, DType::i64);
  count_.name(fmt::format("{}.steps", name)).role(Role::counter);
}

std::vector<Tensor> Optimizer::state() const {
  std::vector<Tensor> all;
  for (const auto& own : moments_) all.insert(all.end(), own.begin(), own.end());
  if (count_.defined()) all.push_back(count_);
  return all;
}

// ---- steps ----

void Optimizer::advance_count(Site site) {
  const std::string_view name = count_.name().view();
  const Scoped<Name> path(thread_state().path, Name(name.substr(0, name.find('.'))));
  std::vector<Tensor> in{count_};
  if (when_.defined()) in.push_back(when_);
  apply_in_place(ops::count_next, in, nullptr, site);
}

void Optimizer::run(const Op& op, std::size_t index, const Tensor& grad, const void* attrs, bool counted, Site site) {
  std::vector<Tensor> in{parameters_[index], contiguous(grad)};
  in.insert(in.end(), moments_[index].begin(), moments_[index].end());
  if (counted) in.push_back(count_);
  in.push_back(lr(group_of(index)));
  if (when_.defined()) in.push_back(when_);
  apply_in_place(op, in, attrs, site);
}

namespace {

// Whether the author has switched off the training of a parameter. In a capture, a parameter that a step has written is a
// result on the tape, so the mark of the author counts too.
bool frozen(const Tensor& parameter) { return !parameter.impl()->requires_grad && !parameter.requires_grad(); }

}  // namespace

// A parameter that got another dtype after the optimizer was made (Module::to) no longer fits its moments.
void Optimizer::check_moments(std::size_t index, Site site) const {
  for (const Tensor& m : moments_[index])
    if (m.dtype() != parameters_[index].dtype())
      throw UsageError(error_text(
          "step",
          fmt::format("'{}' is {} now, but '{}' is {}; make the optimizer after to()", parameters_[index].name().view(),
                      to_string(parameters_[index].type()), m.name().view(), to_string(m.type())),
          site));
}

void Optimizer::step(Site site) {
  ThreadState& state = thread_state();
  const NoGrad no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) check_moments(i, site);
  Scoped<Phase> phase(state.phase, Phase::update);
  if (count_.defined()) advance_count(site);
  before_update(site);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor g = parameters_[i].grad();
    if (!g.defined() || frozen(parameters_[i])) continue;
    const Scoped<Name> path(state.path, parameters_[i].name());
    update(i, parameters_[i], g, site);
    mark_grad_used(parameters_[i]);
  }
  next_step(site);
}

void Optimizer::step_if(const Tensor& when, Site site) {
  if (when.type() != Type{DType::boolean, {}})
    throw TypeError(error_text("step_if", fmt::format("the condition must be bool[], not {}", to_string(when.type())), site));
  const Scoped<Tensor> condition(when_, when);
  step(site);
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad(Tensor());
}

// ---- for each optimizer: its moments, and the op that it runs ----

Sgd::Sgd(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  bool dampens = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const SgdOptions& o = options(i);
    if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) throw UsageError("sgd: nesterov needs momentum and no dampening");
    if (o.momentum != 0) moment(i, "velocity");
    dampens = dampens || (o.momentum != 0 && o.dampening != 0);
  }
  if (dampens) count_steps("sgd");
}

void Sgd::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const SgdOptions& o = options(index);
  if (o.momentum == 0) {
    const SgdAttrs attrs{0, o.weight_decay};
    return run(ops::sgd, index, grad, &attrs, false, site);
  }
  MomentumAttrs attrs;
  attrs.momentum = o.momentum;
  attrs.weight_decay = o.weight_decay;
  attrs.dampening = o.dampening;
  attrs.nesterov = o.nesterov;
  run(ops::sgd_momentum, index, grad, &attrs, o.dampening != 0, site);
}

Adam::Adam(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    moment(i, "m");
    moment(i, "v");
    if (options(i).amsgrad) moment(i, "v_max");
  }
  count_steps("adam");
}

void Adam::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const AdamOptions& o = options(index);
  const AdamAttrs attrs{o.beta1, o.beta2, o.eps, o.weight_decay};
  run(o.amsgrad ? ops::adam_amsgrad : ops::adam, index, grad, &attrs, true, site);
}

AdamW::AdamW(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    moment(i, "m");
    moment(i, "v");
    if (options(i).amsgrad) moment(i, "v_max");
  }
  count_steps("adamw");
}

void AdamW::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const AdamWOptions& o = options(index);
  const AdamAttrs attrs{o.beta1, o.beta2, o.eps, o.weight_decay};
  run(o.amsgrad ? ops::adamw_amsgrad : ops::adamw, index, grad, &attrs, true, site);
}

Rmsprop::Rmsprop(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    moment(i, "squares");
    if (options(i).centered) moment(i, "mean");
    if (options(i).momentum != 0) moment(i, "velocity");
  }
}

void Rmsprop::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const RmspropOptions& o = options(index);
  const RmspropAttrs attrs{o.alpha, o.eps, o.weight_decay, o.momentum};
  const Op& plain = o.momentum != 0 ? ops::rmsprop_momentum : ops::rmsprop;
  const Op& centered = o.momentum != 0 ? ops::rmsprop_centered_momentum : ops::rmsprop_centered;
  run(o.centered ? centered : plain, index, grad, &attrs, false, site);
}

Adagrad::Adagrad(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) moment(i, "squares");
  count_steps("adagrad");
}

void Adagrad::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const AdagradOptions& o = options(index);
  const AdagradAttrs attrs{o.lr_decay, o.eps, o.weight_decay};
  run(ops::adagrad, index, grad, &attrs, true, site);
}

Adadelta::Adadelta(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    moment(i, "squares");
    moment(i, "steps_squared");
  }
}

void Adadelta::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const AdadeltaOptions& o = options(index);
  const AdadeltaAttrs attrs{o.rho, o.eps, o.weight_decay};
  run(ops::adadelta, index, grad, &attrs, false, site);
}

Lion::Lion(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) moment(i, "m");
}

void Lion::update(std::size_t index, const Tensor&, const Tensor& grad, Site site) {
  const LionOptions& o = options(index);
  const LionAttrs attrs{o.beta1, o.beta2, o.weight_decay};
  run(ops::lion, index, grad, &attrs, false, site);
}

}  // namespace tapedeck
