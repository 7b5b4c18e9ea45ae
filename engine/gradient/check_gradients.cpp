#include <tapedeck/engine/gradient/check_gradients.h>

#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck {

namespace {

using Values = std::vector<double>;

// The head of element i of result k: between 1 and 2, and another one for each element.
double head(std::size_t k, std::size_t i) {
  const double turn = 0.6180339887498949 * static_cast<double>(1 + i + 7 * k);  // the golden ratio: the fractions spread evenly
  return 1 + (turn - std::floor(turn));
}

Values heads_of(std::size_t k, std::int64_t count) {
  Values heads(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = head(k, i);
  return heads;
}

Tensor tensor_of(const Values& values, const Shape& shape) { return from_bytes({DType::f64, shape}, values.data()); }

std::vector<std::int64_t> index_of(std::int64_t element, const Shape& shape) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank));
  for (int d = shape.rank - 1; d >= 0; --d) {
    index[static_cast<std::size_t>(d)] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

class Checker {
 public:
  Checker(const GradientFunction& fn, const std::vector<Tensor>& inputs, const GradientCheckOptions& options, Site site)
      : fn_(fn), inputs_(inputs), options_(options), site_(site) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) fail(fmt::format("input {} is undefined", i));
      if (!is_floating(inputs[i].dtype())) continue;
      if (inputs[i].dtype() != DType::f64) fail(fmt::format("input {} is {}: give f64", i, to_string(inputs[i].type())));
      checked_.push_back(i);
    }
  }

  GradientCheck run() {
    const std::vector<Values> exact = exact_gradients();
    for (std::size_t c = 0; c < checked_.size(); ++c) check_input(checked_[c], exact[c]);
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw TypeError(error_text("check_gradients", message, site_)); }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> results = fn_(inputs);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (!results[k].defined() || results[k].dtype() != DType::f64)
        fail(fmt::format("result {} is {}, not f64", k, results[k].defined() ? to_string(results[k].type()) : "undefined"));
    return results;
  }

  // By checked input; zeros where no result depends on it.
  std::vector<Values> exact_gradients() const {
    std::vector<Tensor> leaves = inputs_, wrt;
    for (const std::size_t i : checked_) {
      leaves[i] = tensor_of(inputs_[i].to_vector<double>(), inputs_[i].shape());
      wrt.push_back(leaves[i].requires_grad(true));
    }
    std::vector<Tensor> targets;
    GradientOptions how;
    const std::vector<Tensor> results = call(leaves);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!results[k].requires_grad()) continue;
      targets.push_back(results[k]);
      how.heads.push_back(tensor_of(heads_of(k, results[k].numel()), results[k].shape()));
    }
    const std::vector<Tensor> found = targets.empty() ? std::vector<Tensor>(wrt.size()) : gradients(targets, wrt, how, site_);
    std::vector<Values> values;
    for (std::size_t c = 0; c < found.size(); ++c)
      values.push_back(found[c].defined() ? found[c].to_vector<double>() : Values(static_cast<std::size_t>(wrt[c].numel())));
    return values;
  }

  // sum(fn(inputs) * heads) with one element set to `value`.
  double total(std::size_t input, Values values, std::size_t element, double value) const {
    values[element] = value;
    std::vector<Tensor> inputs = inputs_;
    inputs[input] = tensor_of(values, inputs_[input].shape());
    const NoGrad no_grad;
    double sum = 0;
    const std::vector<Tensor> results = call(inputs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Values y = results[k].to_vector<double>();
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * head(k, i);
    }
    return sum;
  }

  void check_input(std::size_t input, const Values& exact) {
    const Values values = inputs_[input].to_vector<double>();
    const auto count = static_cast<std::int64_t>(values.size());
    const std::int64_t stride = (count - 1) / std::max<std::int64_t>(1, options_.most_elements) + 1;
    for (std::int64_t e = 0; e < count; e += stride) {
      const auto at = static_cast<std::size_t>(e);
      const double step = options_.step * std::max(1.0, std::fabs(values[at]));
      const double above = values[at] + step, below = values[at] - step;
      const double numeric = (total(input, values, at, above) - total(input, values, at, below)) / (above - below);
      const double apart = std::fabs(exact[at] - numeric);
      ++result_.elements;
      if (!(apart <= result_.worst) && !std::isnan(result_.worst)) result_.worst = apart;
      if (!(apart <= options_.atol + options_.rtol * std::fabs(numeric)))  // NaN does not agree
        result_.mismatches.push_back({input, index_of(e, inputs_[input].shape()), exact[at], numeric});
    }
  }

  const GradientFunction& fn_;
  const std::vector<Tensor>& inputs_;
  const GradientCheckOptions& options_;
  const Site site_;
  std::vector<std::size_t> checked_;  // the inputs with a gradient
  GradientCheck result_;
};

}  // namespace

std::string GradientCheck::to_string() const {
  if (ok()) return fmt::format("{} gradients agree with differences, the worst to {:.3g}", elements, worst);
  std::string text = fmt::format("{} of {} gradients differ from differences:", mismatches.size(), elements);
  for (std::size_t i = 0; i < std::min<std::size_t>(mismatches.size(), 10); ++i) {
    const GradientMismatch& m = mismatches[i];
    text += fmt::format("\n  input {} at [{}]: backward {:.9g}, differences {:.9g}", m.input, fmt::join(m.index, ","), m.exact,
                        m.numeric);
  }
  return text;
}

GradientCheck check_gradients(const GradientFunction& fn, const std::vector<Tensor>& inputs,
                              const GradientCheckOptions& options, Site site) {
  return Checker(fn, inputs, options, site).run();
}

}  // namespace tapedeck
