// References of the losses: their definitions, row by row, in double precision.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/kernels/attrs/loss.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

// The rows of scores [n, c, ...]. at(row, k) is the flat index of the score of class k.
struct Rows {
  std::int64_t rows = 1, classes, inner = 1;
  explicit Rows(const Shape& scores) : classes(scores[1]) {
    for (int d = 2; d < scores.rank; ++d) inner *= scores[d];
    rows = scores[0] * inner;
  }
  std::size_t at(std::int64_t row, std::int64_t k) const {
    return static_cast<std::size_t>((row / inner * classes + k) * inner + row % inner);
  }
};

struct Problem {
  Rows rows;
  const std::vector<double>& scores;
  const std::vector<double>& labels;
  std::vector<double> weights;
  std::int64_t ignore_index;
  std::string reduction;
  double smoothing = 0;

  bool counts(std::int64_t row) const { return labels[row] != static_cast<double>(ignore_index); }
  double weight(double k) const { return weights.empty() ? 1 : weights[k]; }
  double target(std::int64_t row, std::int64_t k) const {
    const bool hot = labels[row] == static_cast<double>(k);
    return weight(static_cast<double>(k)) * ((hot ? 1 - smoothing : 0) + smoothing / static_cast<double>(rows.classes));
  }
  double divisor() const {
    double total = 0;
    for (std::int64_t i = 0; i < rows.rows; ++i)
      if (counts(i)) total += weight(labels[i]);
    return reduction == "mean" ? total : 1;
  }
  double log_sum(std::int64_t row) const {
    double total = 0;
    for (std::int64_t k = 0; k < rows.classes; ++k) total += std::exp(scores[rows.at(row, k)]);
    return std::log(total);
  }
  std::vector<double> reduced(const std::vector<double>& losses) const {
    if (reduction == "none") return losses;
    double total = 0;
    for (double l : losses) total += l;
    return {total / divisor()};
  }
};

// -sum of target * (score - normaliser). For nll_loss the normaliser is 0.
std::vector<double> class_losses(const Problem& p, bool normalised) {
  std::vector<double> losses;
  for (std::int64_t i = 0; i < p.rows.rows; ++i) {
    double loss = 0;
    for (std::int64_t k = 0; k < p.rows.classes && p.counts(i); ++k)
      loss += p.target(i, k) * ((normalised ? p.log_sum(i) : 0) - p.scores[p.rows.at(i, k)]);
    losses.push_back(loss);
  }
  return p.reduced(losses);
}

const std::vector<double> kNone;

std::vector<Array> cross_entropy(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<CrossEntropyAttrs>(e);
  const std::vector<double>& weights = x.size() > 2 ? x[2].v : kNone;
  const Problem p{Rows(x[0].type.shape), x[0].v, x[1].v, weights, a.ignore_index, a.reduction.str(), a.label_smoothing};
  return {{out[0], class_losses(p, true)}};
}

std::vector<Array> nll_loss(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<NllAttrs>(e);
  const Problem p{Rows(x[0].type.shape), x[0].v, x[1].v, x.size() > 2 ? x[2].v : kNone, a.ignore_index, a.reduction.str()};
  return {{out[0], class_losses(p, false)}};
}

double row_scale(const Problem& p, const Array& dloss, std::int64_t row) {
  return p.reduction == "none" ? dloss.v[row] : dloss.v[0] / p.divisor();
}

std::vector<Array> cross_entropy_grad(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<CrossEntropyAttrs>(e);
  const std::vector<double>& weights = x.size() > 3 ? x[3].v : kNone;
  const Problem p{Rows(x[0].type.shape), x[0].v, x[1].v, weights, a.ignore_index, a.reduction.str(), a.label_smoothing};
  Array dx = blank(out[0]);
  for (std::int64_t i = 0; i < p.rows.rows; ++i) {
    double all = 0;
    for (std::int64_t k = 0; k < p.rows.classes; ++k) all += p.target(i, k);
    for (std::int64_t k = 0; k < p.rows.classes && p.counts(i); ++k) {
      const double softmax = std::exp(p.scores[p.rows.at(i, k)] - p.log_sum(i));
      dx.v[p.rows.at(i, k)] = (all * softmax - p.target(i, k)) * row_scale(p, x[2], i);
    }
  }
  return {dx};
}

std::vector<Array> nll_loss_grad(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<NllGradAttrs>(e);
  const Problem p{Rows(out[0].shape), kNone, x[0].v, x.size() > 2 ? x[2].v : kNone, a.ignore_index, a.reduction.str()};
  Array dx = blank(out[0]);
  for (std::int64_t i = 0; i < p.rows.rows; ++i)
    for (std::int64_t k = 0; k < p.rows.classes && p.counts(i); ++k)
      dx.v[p.rows.at(i, k)] = -p.target(i, k) * row_scale(p, x[1], i);
  return {dx};
}

const AddReference kCrossEntropy("cross_entropy", cross_entropy);
const AddReference kCrossEntropyGrad("cross_entropy_grad", cross_entropy_grad);
const AddReference kNll("nll_loss", nll_loss);
const AddReference kNllGrad("nll_loss_grad", nll_loss_grad);

const AddReference kHuber("huber", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const double delta = attributes_of<HuberAttrs>(e).delta;
  return elementwise([delta](const std::vector<double>& d) {
    return std::fabs(d[0]) <= delta ? d[0] * d[0] / 2 : delta * (std::fabs(d[0]) - delta / 2);
  })(e, x, out);
});

const AddReference kBce("binary_cross_entropy", elementwise([](const std::vector<double>& a) {
                          return -(a[1] * std::log(a[0]) + (1 - a[1]) * std::log(1 - a[0]));
                        }));

const AddReference kBceWithLogits("binary_cross_entropy_with_logits", elementwise([](const std::vector<double>& a) {
                                    const double positive = a.size() > 2 ? a[2] : 1;
                                    return positive * a[1] * std::log1p(std::exp(-a[0])) +
                                           (1 - a[1]) * std::log1p(std::exp(a[0]));
                                  }));

const AddReference kKlDiv("kl_div", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const bool log_target = attributes_of<KlDivAttrs>(e).log_target;
  return elementwise([log_target](const std::vector<double>& a) {
    const double t = log_target ? std::exp(a[1]) : a[1];
    return t == 0 ? 0 : t * (std::log(t) - a[0]);
  })(e, x, out);
});

// ---- ctc: sums over all paths of classes that collapse to the target ----

struct CtcProblem {
  const Array& scores;
  std::vector<std::int64_t> target;
  std::int64_t n, times, classes, batch, blank;

  double score(std::int64_t t, std::int64_t k) const { return scores.v[(t * batch + n) * classes + k]; }
};

CtcProblem ctc_problem(const Example& e, const std::vector<Array>& x, std::int64_t n) {
  const Shape& s = x[0].type.shape;
  CtcProblem p{x[0], {}, n, static_cast<std::int64_t>(x[2].v[n]), s[2], s[1], attributes_of<CtcAttrs>(e).blank};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x[3].v[n]); ++i)
    p.target.push_back(static_cast<std::int64_t>(x[1].v[n * x[1].type.shape[1] + i]));
  return p;
}

// Calls f(path, probability) for every path that collapses to the target.
void for_paths(const CtcProblem& p, const std::function<void(const std::vector<std::int64_t>&, double)>& f) {
  std::vector<std::int64_t> path(static_cast<std::size_t>(p.times));
  for (;;) {
    std::vector<std::int64_t> spelt;
    double log_probability = 0;
    for (std::size_t t = 0; t < path.size(); ++t) {
      log_probability += p.score(static_cast<std::int64_t>(t), path[t]);
      if (path[t] != p.blank && (t == 0 || path[t] != path[t - 1])) spelt.push_back(path[t]);
    }
    if (spelt == p.target) f(path, std::exp(log_probability));
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == p.classes) path[t++] = 0;
    if (t == path.size()) return;
  }
}

double ctc_probability(const CtcProblem& p) {
  double total = 0;
  for_paths(p, [&](const std::vector<std::int64_t>&, double probability) { total += probability; });
  return total;
}

const AddReference kCtc("ctc_loss", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array losses = blank(out[0]);
  for (std::size_t n = 0; n < losses.v.size(); ++n) {
    const double probability = ctc_probability(ctc_problem(e, x, static_cast<std::int64_t>(n)));
    losses.v[n] = probability == 0 && attributes_of<CtcAttrs>(e).zero_infinity ? 0 : -std::log(probability);
  }
  return std::vector<Array>{losses};
});

const AddReference kCtcGrad("ctc_loss_grad", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  for (std::int64_t n = 0; n < x[0].type.shape[1]; ++n) {
    const CtcProblem p = ctc_problem(e, x, n);
    const double total = ctc_probability(p);
    for_paths(p, [&](const std::vector<std::int64_t>& path, double probability) {
      for (std::size_t t = 0; t < path.size(); ++t)
        dx.v[(static_cast<std::int64_t>(t) * p.batch + n) * p.classes + path[t]] -= probability / total * x[4].v[n];
    });
  }
  return std::vector<Array>{dx};
});

}  // namespace
}  // namespace tapedeck::testing
