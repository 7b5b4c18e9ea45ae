// The steps of optimizers. Operands: the parameter w, its gradient g, the moments, perhaps the number of the step, the rate lr,
// and perhaps a truth value that says whether the step counts.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/optimizer.h>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// The operands behind the moments, of which there are `moments`.
struct Step {
  Term w, g, rate, count;  // count is empty if there is none
  Terms moments;
};

Term update_condition(N& n) { return n.in(n.count() - 1).dtype == DType::boolean ? n[n.count() - 1] : Term(); }

Step step_of(N& n, int moments, double decay = 0) {
  Step s;
  s.w = n[0];
  s.g = decay == 0 ? n[1] : n[1] + decay * n[0];
  for (int i = 0; i < moments; ++i) s.moments.push_back(n[2 + i]);
  const int last = n.count() - (update_condition(n).name().empty() ? 1 : 2);
  s.rate = n[last].as(n.in(0).dtype);
  if (last > 2 + moments) s.count = n[last - 1];
  return s;
}

// The results of a step that counts; the old values of one that does not.
Terms if_it_counts(N& n, const Terms& results, const Terms& old) {
  const Term counts = update_condition(n);
  if (counts.name().empty()) return results;
  Terms chosen;
  for (std::size_t i = 0; i < results.size(); ++i) chosen.push_back(choose(counts, results[i], old[i]));
  return chosen;
}

Terms sgd(N& n) {
  const Step s = step_of(n, 0, n.attributes<SgdAttrs>().weight_decay);
  return if_it_counts(n, {s.w - s.rate * s.g}, {n[0]});
}

Terms sgd_momentum(N& n) {
  const auto& a = n.attributes<MomentumAttrs>();
  const Step s = step_of(n, 1, a.weight_decay);
  Term push = s.g * (1 - a.dampening);
  if (!s.count.name().empty()) push = choose(is(s.count, 1), s.g, push);  // the first step does not dampen
  const Term v = a.momentum * s.moments[0] + push;
  const Term way = a.nesterov ? s.g + a.momentum * v : v;
  return if_it_counts(n, {s.w - s.rate * way, v}, {n[0], n[2]});
}

// 1 - beta^t, in f64: near the first step it is a difference of numbers that are almost equal.
Term correction(const Term& count, double beta, DType dtype) { return (1 - power(beta, count.as(DType::f64))).as(dtype); }

Terms adam(N& n, bool decoupled, bool keeps_largest) {
  const auto& a = n.attributes<AdamAttrs>();
  const Step s = step_of(n, keeps_largest ? 3 : 2, decoupled ? 0 : a.weight_decay);
  const DType dtype = n.in(0).dtype;
  const Term w = decoupled && a.weight_decay != 0 ? s.w - s.rate * a.weight_decay * s.w : s.w;
  const Term m = a.beta1 * s.moments[0] + (1 - a.beta1) * s.g, v = a.beta2 * s.moments[1] + (1 - a.beta2) * s.g * s.g;
  Terms results = {w, m, v};
  if (keeps_largest) results.push_back(larger(s.moments[2], v));
  const Term spread = root_of(results.back() / correction(s.count, a.beta2, dtype)) + a.eps;
  results[0] = w - s.rate * (m / correction(s.count, a.beta1, dtype)) / spread;
  return if_it_counts(n, results, {n[0], n[2], n[3], n[4]});
}

Terms rmsprop(N& n, bool centered, bool momentum) {
  const auto& a = n.attributes<RmspropAttrs>();
  const Step s = step_of(n, 1 + (centered ? 1 : 0) + (momentum ? 1 : 0), a.weight_decay);
  Terms results = {s.w, a.alpha * s.moments[0] + (1 - a.alpha) * s.g * s.g};
  Term spread = results[1];
  if (centered) {
    results.push_back(a.alpha * s.moments[1] + (1 - a.alpha) * s.g);
    spread = spread - results.back() * results.back();
  }
  Term way = s.g / (root_of(spread) + a.eps);
  if (momentum) results.push_back(way = a.momentum * s.moments.back() + way);
  results[0] = s.w - s.rate * way;
  return if_it_counts(n, results, {n[0], n[2], n[3], n[4]});
}

Terms adagrad(N& n) {
  const auto& a = n.attributes<AdagradAttrs>();
  const Step s = step_of(n, 1, a.weight_decay);
  const Term sum = s.moments[0] + s.g * s.g;
  const Term rate = a.lr_decay == 0 ? s.rate : s.rate / (1 + (s.count.as(n.in(0).dtype) - 1) * a.lr_decay);
  return if_it_counts(n, {s.w - rate * s.g / (root_of(sum) + a.eps), sum}, {n[0], n[2]});
}

Terms adadelta(N& n) {
  const auto& a = n.attributes<AdadeltaAttrs>();
  const Step s = step_of(n, 2, a.weight_decay);
  const Term squares = a.rho * s.moments[0] + (1 - a.rho) * s.g * s.g;
  const Term way = root_of(s.moments[1] + a.eps) / root_of(squares + a.eps) * s.g;
  const Term ways = a.rho * s.moments[1] + (1 - a.rho) * way * way;
  return if_it_counts(n, {s.w - s.rate * way, squares, ways}, {n[0], n[2], n[3]});
}

Terms lion(N& n) {
  const auto& a = n.attributes<LionAttrs>();
  const Step s = step_of(n, 1);
  const Term way = (a.beta1 * s.moments[0] + (1 - a.beta1) * s.g).apply("Sign");
  const Term m = a.beta2 * s.moments[0] + (1 - a.beta2) * s.g;
  return if_it_counts(n, {s.w - s.rate * (a.weight_decay == 0 ? way : way + a.weight_decay * s.w), m}, {n[0], n[2]});
}

// A step that is not finite shrinks the scale; many finite ones in a row let it grow.
Terms loss_scale_next(N& n) {
  const auto& a = n.attributes<LossScaleAttrs>();
  const Term scale = n[0], steps = n[1] + 1, finite = n[2], grows = steps >= static_cast<double>(a.interval);
  return {choose(finite, choose(grows, scale * a.growth, scale), scale * a.backoff),
          choose(both(finite, negated(grows)), steps, 0)};
}

}  // namespace

std::vector<ExportOp> update_exports() {
  return {
      composed("sgd", sgd),
      composed("sgd_momentum", sgd_momentum),
      composed("adam", [](N& n) { return adam(n, false, false); }),
      composed("adamw", [](N& n) { return adam(n, true, false); }),
      composed("adam_amsgrad", [](N& n) { return adam(n, false, true); }),
      composed("adamw_amsgrad", [](N& n) { return adam(n, true, true); }),
      composed("rmsprop", [](N& n) { return rmsprop(n, false, false); }),
      composed("rmsprop_momentum", [](N& n) { return rmsprop(n, false, true); }),
      composed("rmsprop_centered", [](N& n) { return rmsprop(n, true, false); }),
      composed("rmsprop_centered_momentum", [](N& n) { return rmsprop(n, true, true); }),
      composed("adagrad", adagrad),
      composed("adadelta", adadelta),
      composed("lion", lion),
      composed("count_next", [](N& n) { return if_it_counts(n, {n[0] + 1}, {n[0]}); }),
      composed("loss_scale_next", loss_scale_next),
      composed("rng_next",
               [](N& n) {
                 return Terms{n[0] + n.list({0, 1})};
               }),  // the seed, and the number of the step
  };
}

}  // namespace tapedeck::onnx
