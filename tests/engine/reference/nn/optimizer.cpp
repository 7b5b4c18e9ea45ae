// References of the optimizers' steps by their published formulas, one element at a time, and of the ops on gradients.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/kernels/attrs/optimizer.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

// A formula for one element. `x` holds this element of every operand, in order; the formula overwrites the replaced ones.
using Step = std::function<void(const Example& e, std::vector<double>& x)>;

// `replaced` lists the operands that become results. If the last operand is a bool and false, the results are the unchanged
// operands.
Reference stepping(std::vector<std::size_t> replaced, Step step) {
  return [replaced, step](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    const bool conditional = x.back().type.dtype == DType::boolean;
    std::vector<Array> results;
    for (std::size_t i : replaced) results.push_back(x[i]);
    if (conditional && x.back().v[0] == 0) return results;
    for (std::size_t i = 0; i < static_cast<std::size_t>(out[0].numel()); ++i) {
      std::vector<double> element;
      for (std::size_t k = 0; k < x.size() - (conditional ? 1 : 0); ++k)
        element.push_back(x[k].type.shape.rank == 0 ? x[k].v[0] : x[k].v[i]);
      step(e, element);
      for (std::size_t k = 0; k < replaced.size(); ++k) results[k].v[i] = element[replaced[k]];
    }
    return results;
  };
}

const AddReference kSgd("sgd", stepping({0}, [](const Example& e, std::vector<double>& x) {
                          x[0] -= x[2] * (x[1] + attributes_of<SgdAttrs>(e).weight_decay * x[0]);
                        }));

const AddReference kMomentum("sgd_momentum", stepping({0, 2}, [](const Example& e, std::vector<double>& x) {
                               const auto& a = attributes_of<MomentumAttrs>(e);
                               const double g = x[1] + a.weight_decay * x[0];
                               const bool first = x.size() == 5 && x[3] == 1;
                               x[2] = a.momentum * x[2] + (first ? 1 : 1 - a.dampening) * g;
                               x[0] -= x.back() * (a.nesterov ? g + a.momentum * x[2] : x[2]);
                             }));

void adam(const Example& e, std::vector<double>& x, bool decoupled, bool amsgrad) {
  const auto& a = attributes_of<AdamAttrs>(e);
  const double rate = x.back(), t = x[x.size() - 2];
  const double g = x[1] + (decoupled ? 0 : a.weight_decay * x[0]);
  if (decoupled) x[0] -= rate * a.weight_decay * x[0];
  x[2] = a.beta1 * x[2] + (1 - a.beta1) * g;
  x[3] = a.beta2 * x[3] + (1 - a.beta2) * g * g;
  if (amsgrad) x[4] = std::max(x[4], x[3]);
  const double m = x[2] / (1 - std::pow(a.beta1, t)), v = (amsgrad ? x[4] : x[3]) / (1 - std::pow(a.beta2, t));
  x[0] -= rate * m / (std::sqrt(v) + a.eps);
}
const AddReference kAdam("adam",
                         stepping({0, 2, 3}, [](const Example& e, std::vector<double>& x) { adam(e, x, false, false); }));
const AddReference kAdamw("adamw",
                          stepping({0, 2, 3}, [](const Example& e, std::vector<double>& x) { adam(e, x, true, false); }));
const AddReference kAdamMax("adam_amsgrad",
                            stepping({0, 2, 3, 4}, [](const Example& e, std::vector<double>& x) { adam(e, x, false, true); }));
const AddReference kAdamwMax("adamw_amsgrad",
                             stepping({0, 2, 3, 4}, [](const Example& e, std::vector<double>& x) { adam(e, x, true, true); }));

void rmsprop(const Example& e, std::vector<double>& x, double* mean, double* velocity) {
  const auto& a = attributes_of<RmspropAttrs>(e);
  const double g = x[1] + a.weight_decay * x[0];
  x[2] = a.alpha * x[2] + (1 - a.alpha) * g * g;
  double spread = x[2];
  if (mean) {
    *mean = a.alpha * *mean + (1 - a.alpha) * g;
    spread -= *mean * *mean;
  }
  double way = g / (std::sqrt(spread) + a.eps);
  if (velocity) way = *velocity = a.momentum * *velocity + way;
  x[0] -= x.back() * way;
}
const AddReference kRmsprop("rmsprop", stepping({0, 2}, [](const Example& e, std::vector<double>& x) {
                              rmsprop(e, x, nullptr, nullptr);
                            }));
const AddReference kRmspropMomentum("rmsprop_momentum", stepping({0, 2, 3}, [](const Example& e, std::vector<double>& x) {
                                      rmsprop(e, x, nullptr, &x[3]);
                                    }));
const AddReference kRmspropCentered("rmsprop_centered", stepping({0, 2, 3}, [](const Example& e, std::vector<double>& x) {
                                      rmsprop(e, x, &x[3], nullptr);
                                    }));
const AddReference kRmspropBoth("rmsprop_centered_momentum",
                                stepping({0, 2, 3, 4},
                                         [](const Example& e, std::vector<double>& x) { rmsprop(e, x, &x[3], &x[4]); }));

const AddReference kAdagrad("adagrad", stepping({0, 2}, [](const Example& e, std::vector<double>& x) {
                              const auto& a = attributes_of<AdagradAttrs>(e);
                              const double g = x[1] + a.weight_decay * x[0];
                              x[2] += g * g;
                              x[0] -= x[4] / (1 + (x[3] - 1) * a.lr_decay) * g / (std::sqrt(x[2]) + a.eps);
                            }));

const AddReference kAdadelta("adadelta", stepping({0, 2, 3}, [](const Example& e, std::vector<double>& x) {
                               const auto& a = attributes_of<AdadeltaAttrs>(e);
                               const double g = x[1] + a.weight_decay * x[0];
                               x[2] = a.rho * x[2] + (1 - a.rho) * g * g;
                               const double way = std::sqrt(x[3] + a.eps) / std::sqrt(x[2] + a.eps) * g;
                               x[3] = a.rho * x[3] + (1 - a.rho) * way * way;
                               x[0] -= x[4] * way;
                             }));

const AddReference kLion("lion", stepping({0, 2}, [](const Example& e, std::vector<double>& x) {
                           const auto& a = attributes_of<LionAttrs>(e);
                           const double way = a.beta1 * x[2] + (1 - a.beta1) * x[1];
                           x[2] = a.beta2 * x[2] + (1 - a.beta2) * x[1];
                           x[0] -= x[3] * ((way > 0) - (way < 0) + a.weight_decay * x[0]);
                         }));

const AddReference kCount("count_next", stepping({0}, [](const Example&, std::vector<double>& x) { x[0] += 1; }));

// ---- ops on gradients ----

const AddReference kFinite("all_finite", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0], 1);
  for (const Array& a : x)
    for (double v : a.v)
      if (!std::isfinite(v)) y.v[0] = 0;
  return std::vector<Array>{y};
});

const AddReference kNorm("global_norm", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  long double total = 0;
  for (const Array& a : x)
    for (double v : a.v) total += static_cast<long double>(v) * v;
  return std::vector<Array>{{out[0], {static_cast<double>(std::sqrt(total))}}};
});

const AddReference kScale("loss_scale_next", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<LossScaleAttrs>(e);
  const double scale = x[0].v[0], streak = x[1].v[0] + 1;
  if (x[2].v[0] == 0) return std::vector<Array>{{out[0], {scale * a.backoff}}, {out[1], {0}}};
  if (streak >= static_cast<double>(a.interval)) return std::vector<Array>{{out[0], {scale * a.growth}}, {out[1], {0}}};
  return std::vector<Array>{{out[0], {scale}}, {out[1], {streak}}};
});

}  // namespace
}  // namespace tapedeck::testing
