// Reduces all f64 results of an op to one number, weighted by random heads, and computes how this number changes with an
// operand (central differences).
#pragma once

#include <tapedeck/tests/engine/all_ops.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace tapedeck::testing {

inline bool differentiable(const Op& op) { return op.vjp && !op.is(kNoGradient); }

// Random weights for each result's elements; undefined for results that are not f64.
inline std::vector<Tensor> random_heads(const std::vector<Tensor>& results, std::mt19937_64& random) {
  std::vector<Tensor> heads;
  for (const Tensor& y : results)
    heads.push_back(y.dtype() == DType::f64 ? f64_tensor(random_numbers(y.numel(), random), y.shape()) : Tensor());
  return heads;
}

inline bool any_defined(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (t.defined()) return true;
  return false;
}

// sum_k sum(results[k] * heads[k]) as a tensor with history; undefined if no result has a history.
inline Tensor loss_of(const std::vector<Tensor>& results, const std::vector<Tensor>& heads) {
  Tensor loss;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!heads[k].defined() || !results[k].requires_grad()) continue;
    const Tensor piece = sum(mul(results[k], heads[k]));
    loss = loss.defined() ? add(loss, piece) : piece;
  }
  return loss;
}

// The same number, computed by plain loops.
inline double weighed(const Example& e, const std::vector<Tensor>& operands, const std::vector<Tensor>& heads) {
  const NoGrad no_grad;
  const std::vector<Tensor> results = run(e, operands);
  double total = 0;
  for (std::size_t k = 0; k < results.size(); ++k)
    if (heads[k].defined()) total += dot(elements(heads[k]), elements(results[k]));
  return total;
}

inline Tensor shifted(const Tensor& x, const std::vector<double>& direction, double step) {
  std::vector<double> values = elements(x);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
  return f64_tensor(values, x.shape());
}

// The derivative of f at x along `direction`, by central differences.
inline double central_difference(const Tensor& x, const std::vector<double>& direction,
                                 const std::function<double(const Tensor&)>& f) {
  constexpr double kStep = 1e-5;
  return (f(shifted(x, direction, kStep)) - f(shifted(x, direction, -kStep))) / (2 * kStep);
}

inline void expect_same_slope(double exact, double numeric, double tolerance, const std::string& what) {
  EXPECT_NEAR(exact, numeric, tolerance * std::max(1.0, std::fabs(numeric))) << what;
}

inline double along(const Tensor& gradient, const std::vector<double>& direction) {
  return gradient.defined() ? dot(elements(gradient), direction) : 0;
}

// Turns the operands into leaves. f64 operands that are marked in `wanted` require a gradient.
inline std::vector<Tensor> leaves(const std::vector<Tensor>& operands, unsigned wanted = ~0u) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    all.push_back(operands[i].detach());
    if (operands[i].dtype() == DType::f64 && ((wanted >> std::min<std::size_t>(i, 31)) & 1)) all.back().requires_grad(true);
  }
  return all;
}

}  // namespace tapedeck::testing
