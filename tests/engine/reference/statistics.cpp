// References of statistics over axes: each result is computed from the list of its elements.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/kernels/attrs/statistics.h>

#include <algorithm>
#include <limits>

namespace tapedeck::testing {
namespace {

using Statistic = std::function<double(const std::vector<double>&)>;

// Applies f to the list of elements of each result, in row-major order.
std::vector<Array> over_axes(const Array& x, const Ints& axes, const Type& out, const Statistic& f) {
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(out.numel()));
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    std::int64_t result = 0;
    const auto at = coordinates(static_cast<std::int64_t>(i), x.type.shape);
    for (int d = 0; d < x.type.shape.rank; ++d)
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) result = result * x.type.shape[d] + at[d];
    groups[result].push_back(x.v[i]);
  }
  Array y = blank(out);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = f(groups[i]);
  return {y};
}

Reference statistic(const Statistic& f) {
  return [f](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    return over_axes(x[0], attributes_of<ReduceAttrs>(e).axes, out[0], f);
  };
}

double product(const std::vector<double>& v) {
  double p = 1;
  for (double x : v) p *= x;
  return p;
}
double count(const std::vector<double>& v) {
  double n = 0;
  for (double x : v) n += x != 0;
  return n;
}
double log_sum_exp(const std::vector<double>& v) {
  double total = 0;
  for (double x : v) total += std::exp(x);
  return std::log(total);
}
double variance(const std::vector<double>& v, double correction) {
  double mean = 0, total = 0;
  for (double x : v) mean += x / static_cast<double>(v.size());
  for (double x : v) total += (x - mean) * (x - mean);
  return total / std::max(static_cast<double>(v.size()) - correction, 0.0);
}
double p_norm(const std::vector<double>& v, double p) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity(), total = 0;
  for (double x : v) {
    largest = std::max(largest, std::fabs(x));
    smallest = std::min(smallest, std::fabs(x));
    total += p == 0 ? x != 0 : std::pow(std::fabs(x), p);
  }
  if (std::isinf(p)) return p > 0 ? largest : smallest;
  return p == 0 ? total : std::pow(total, 1 / p);
}

const AddReference prod("prod", statistic(product));
const AddReference any("any", statistic([](const std::vector<double>& v) { return count(v) > 0 ? 1.0 : 0.0; }));
const AddReference all("all", statistic([](const std::vector<double>& v) {
                         return count(v) == static_cast<double>(v.size()) ? 1.0 : 0.0;
                       }));
const AddReference count_nonzero("count_nonzero", statistic(count));
const AddReference logsumexp("logsumexp", statistic(log_sum_exp));

Reference deviation(bool root) {
  return [root](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    const auto& a = attributes_of<VarAttrs>(e);
    return over_axes(x[0], a.axes, out[0], [&](const std::vector<double>& v) {
      const double variance_of = variance(v, a.correction);
      return root ? std::sqrt(variance_of) : variance_of;
    });
  };
}
const AddReference var("var", deviation(false));
const AddReference standard("std", deviation(true));

const AddReference norm("norm", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<NormAttrs>(e);
  return over_axes(x[0], a.axes, out[0], [&](const std::vector<double>& v) { return p_norm(v, a.p); });
});

const AddReference argmin("argmin", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  return over_axes(x[0], {attributes_of<AxisAttrs>(e).axis}, out[0], [](const std::vector<double>& v) {
    return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
  });
});

}  // namespace
}  // namespace tapedeck::testing
