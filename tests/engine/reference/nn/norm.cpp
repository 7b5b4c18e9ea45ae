// References of the normalisations: each element's coordinates give its group, and the definition is applied to each group.
#include <tapedeck/engine/ops/norm.h>
#include <tapedeck/tests/engine/reference.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

using Coordinates = std::vector<std::int64_t>;

// Gives the index of the statistic and the index of the weight that an element uses.
struct Grouping {
  std::function<std::size_t(const Coordinates&)> statistic, weight;
};

Grouping by_channel(const Shape&) {
  auto channel = [](const Coordinates& at) { return static_cast<std::size_t>(at[1]); };
  return {channel, channel};
}

Grouping by_row(const Shape& x, std::int64_t dims) {
  const int kept = x.rank - static_cast<int>(dims);
  auto index = [x](const Coordinates& at, int from, int to) {
    std::int64_t i = 0;
    for (int d = from; d < to; ++d) i = i * x[d] + at[d];
    return static_cast<std::size_t>(i);
  };
  return {[=](const Coordinates& at) { return index(at, 0, kept); },
          [=](const Coordinates& at) { return index(at, kept, x.rank); }};
}

Grouping by_group(const Shape& x, std::int64_t groups) {
  const std::int64_t per_group = x[1] / groups;
  return {[=](const Coordinates& at) { return static_cast<std::size_t>(at[0] * groups + at[1] / per_group); },
          [](const Coordinates& at) { return static_cast<std::size_t>(at[1]); }};
}

// For every element, the index of its statistic and of its weight. All references of this family use these lists.
struct Places {
  std::vector<std::size_t> statistic, weight;
  std::vector<double> count;  // number of elements of each statistic

  Places(const Grouping& g, const Array& x, std::size_t statistics) : count(statistics) {
    for (std::size_t i = 0; i < x.v.size(); ++i) {
      const Coordinates at = coordinates(static_cast<std::int64_t>(i), x.type.shape);
      statistic.push_back(g.statistic(at));
      weight.push_back(g.weight(at));
      ++count[statistic.back()];
    }
  }
  std::vector<double> average(const std::vector<double>& v) const {
    std::vector<double> total(count.size());
    for (std::size_t i = 0; i < v.size(); ++i) total[statistic[i]] += v[i];
    for (std::size_t k = 0; k < total.size(); ++k) total[k] /= std::max(count[k], 1.0);
    return total;
  }
};

// Returns y, the mean, and the variance or its reciprocal root (rstd).
std::vector<Array> forward(const Grouping& g, double eps, bool variance, const std::vector<Array>& x,
                           const std::vector<Type>& out) {
  Array y = blank(out[0]), mean = blank(out[1]), second = blank(out[2]);
  const Places p(g, x[0], mean.v.size());
  mean.v = p.average(x[0].v);
  std::vector<double> squares;
  for (std::size_t i = 0; i < x[0].v.size(); ++i) squares.push_back(std::pow(x[0].v[i] - mean.v[p.statistic[i]], 2));
  second.v = p.average(squares);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    y.v[i] = (x[0].v[i] - mean.v[p.statistic[i]]) / std::sqrt(second.v[p.statistic[i]] + eps);
    if (x.size() > 1) y.v[i] *= x[1].v[p.weight[i]];
    if (x.size() > 2) y.v[i] += x[2].v[p.weight[i]];
  }
  if (!variance)
    for (double& s : second.v) s = 1 / std::sqrt(s + eps);
  return {y, mean, second};
}

// dx, dweight and dbias by the chain rule. mean and rstd depend on x, and they have gradients of their own. `mean` and
// `dmean` are empty for rms_norm.
std::vector<Array> backward(const Grouping& g, const std::vector<double>& x, const Array& dy, const std::vector<double>& mean,
                            const std::vector<double>& rstd, const std::vector<double>& dmean, const std::vector<double>& drstd,
                            const std::vector<double>& weight, const std::vector<Type>& out) {
  const bool centred = !mean.empty();
  const Places p(g, dy, rstd.size());
  auto from_mean = [&](std::size_t i) { return x[i] - (centred ? mean[p.statistic[i]] : 0); };
  auto dxh = [&](std::size_t i) { return dy.v[i] * (weight.empty() ? 1 : weight[p.weight[i]]); };
  std::vector<double> total_rstd = drstd, total_mean = dmean;
  for (std::size_t i = 0; i < x.size(); ++i) {
    total_rstd[p.statistic[i]] += dxh(i) * from_mean(i);
    if (centred) total_mean[p.statistic[i]] -= dxh(i) * rstd[p.statistic[i]];
  }
  std::vector<Array> result;
  for (const Type& t : out) result.push_back(blank(t));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t k = p.statistic[i];
    result[0].v[i] = dxh(i) * rstd[k] - total_rstd[k] * std::pow(rstd[k], 3) * from_mean(i) / p.count[k];
    if (centred) result[0].v[i] += total_mean[k] / p.count[k];
    if (out.size() > 1) result[1].v[p.weight[i]] += dy.v[i] * from_mean(i) * rstd[k];
    if (out.size() > 2) result[2].v[p.weight[i]] += dy.v[i];
  }
  return result;
}

std::vector<Array> centred_backward(const Grouping& g, const std::vector<Array>& x, const std::vector<Type>& out) {
  return backward(g, x[0].v, x[1], x[2].v, x[3].v, x[4].v, x[5].v, x.size() > 6 ? x[6].v : std::vector<double>(), out);
}

const AddReference batch_norm_reference("batch_norm", [](const Example& e, const std::vector<Array>& x,
                                                         const std::vector<Type>& out) {
  return forward(by_channel(x[0].type.shape), attributes_of<BatchNormAttrs>(e).eps, true, x, out);
});

const AddReference batch_norm_grad_reference("batch_norm_grad", [](const Example& e, const std::vector<Array>& x,
                                                                   const std::vector<Type>& out) {
  std::vector<Array> with_rstd = x;
  for (std::size_t k = 0; k < x[3].v.size(); ++k) {
    with_rstd[3].v[k] = 1 / std::sqrt(x[3].v[k] + attributes_of<BatchNormAttrs>(e).eps);
    with_rstd[5].v[k] = -2 * x[5].v[k] / std::pow(with_rstd[3].v[k], 3);
  }
  return centred_backward(by_channel(x[0].type.shape), with_rstd, out);
});

const AddReference inference_reference("batch_norm_inference", [](const Example& e, const std::vector<Array>& x,
                                                                  const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const auto c = static_cast<std::size_t>(coordinates(static_cast<std::int64_t>(i), out[0].shape)[1]);
    y.v[i] = (x[0].v[i] - x[1].v[c]) / std::sqrt(x[2].v[c] + attributes_of<BatchNormAttrs>(e).eps);
    if (x.size() > 3) y.v[i] *= x[3].v[c];
    if (x.size() > 4) y.v[i] += x[4].v[c];
  }
  return std::vector<Array>{y};
});

const AddReference layer_norm_reference("layer_norm",
                                        [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
                                          const auto& a = attributes_of<LayerNormAttrs>(e);
                                          return forward(by_row(x[0].type.shape, a.dims), a.eps, false, x, out);
                                        });

const AddReference layer_norm_grad_reference("layer_norm_grad", [](const Example& e, const std::vector<Array>& x,
                                                                   const std::vector<Type>& out) {
  return centred_backward(by_row(x[0].type.shape, attributes_of<LayerNormAttrs>(e).dims), x, out);
});

const AddReference group_norm_reference("group_norm",
                                        [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
                                          const auto& a = attributes_of<GroupNormAttrs>(e);
                                          return forward(by_group(x[0].type.shape, a.groups), a.eps, false, x, out);
                                        });

const AddReference group_norm_grad_reference("group_norm_grad", [](const Example& e, const std::vector<Array>& x,
                                                                   const std::vector<Type>& out) {
  return centred_backward(by_group(x[0].type.shape, attributes_of<GroupNormAttrs>(e).groups), x, out);
});

const AddReference rms_norm_reference("rms_norm", [](const Example& e, const std::vector<Array>& x,
                                                     const std::vector<Type>& out) {
  const auto& a = attributes_of<LayerNormAttrs>(e);
  Array y = blank(out[0]), rstd = blank(out[1]);
  const Places p(by_row(x[0].type.shape, a.dims), x[0], rstd.v.size());
  std::vector<double> squares;
  for (double v : x[0].v) squares.push_back(v * v);
  rstd.v = p.average(squares);
  for (double& s : rstd.v) s = 1 / std::sqrt(s + a.eps);
  for (std::size_t i = 0; i < y.v.size(); ++i)
    y.v[i] = x[0].v[i] * rstd.v[p.statistic[i]] * (x.size() > 1 ? x[1].v[p.weight[i]] : 1);
  return std::vector<Array>{y, rstd};
});

const AddReference rms_norm_grad_reference("rms_norm_grad", [](const Example& e, const std::vector<Array>& x,
                                                               const std::vector<Type>& out) {
  return backward(by_row(x[0].type.shape, attributes_of<LayerNormAttrs>(e).dims), x[0].v, x[1], {}, x[2].v, {}, x[3].v,
                  x.size() > 4 ? x[4].v : std::vector<double>(), out);
});

const AddReference ema_reference("ema", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const double momentum = attributes_of<EmaAttrs>(e).momentum;
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = (1 - momentum) * x[0].v[i] + momentum * x[1].v[i];
  return std::vector<Array>{y};
});

}  // namespace
}  // namespace tapedeck::testing
