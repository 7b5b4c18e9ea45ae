// References of sum, mean, max, min and argmax. Every operand element, in row-major order, is combined (added or compared) with
// the element that its place in the result holds. argmax searches along the axis for each element of the result.
#include <tapedeck/tests/engine/reference.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::testing {
namespace {

bool listed(const Ints& axes, int d) { return std::find(axes.begin(), axes.end(), d) != axes.end(); }

// The place of an element in the result: its coordinates without the reduced ones, or with zeros for them.
std::int64_t place(const std::vector<std::int64_t>& at, const ReduceAttrs& a, const Shape& out) {
  std::vector<std::int64_t> kept;
  for (int d = 0; d < static_cast<int>(at.size()); ++d) {
    if (!listed(a.axes, d))
      kept.push_back(at[d]);
    else if (a.keepdims)
      kept.push_back(0);
  }
  return index_of(kept, out);
}

Reference folded(double start, std::function<double(double, double)> f) {
  return [=](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    Array y = blank(out[0], start);
    for (std::size_t i = 0; i < x[0].v.size(); ++i) {
      const auto at = coordinates(static_cast<std::int64_t>(i), x[0].type.shape);
      double& into = y.v[place(at, attributes_of<ReduceAttrs>(e), out[0].shape)];
      into = f(into, x[0].v[i]);
    }
    return std::vector<Array>{y};
  };
}

const Reference total = folded(0, [](double a, double b) { return a + b; });

const AddReference reductions[] = {
    {"sum", total},
    {"mean",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       std::vector<Array> y = total(e, x, out);
       for (double& v : y[0].v) v *= static_cast<double>(y[0].v.size()) / static_cast<double>(x[0].v.size());
       return y;
     }},
    {"max", folded(-INFINITY, [](double a, double b) { return std::isnan(a) || a > b ? a : b; })},
    {"min", folded(INFINITY, [](double a, double b) { return std::isnan(a) || a < b ? a : b; })},
};

// The first coordinate along the axis whose element is not exceeded by another.
std::vector<Array> index_of_largest(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto axis = static_cast<std::size_t>(attributes_of<AxisAttrs>(e).axis);
  const Shape& shape = x[0].type.shape;
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    auto at = coordinates(static_cast<std::int64_t>(i), out[0].shape);
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    double largest = -INFINITY;
    for (std::int64_t k = 0; k < shape[static_cast<int>(axis)]; ++k) {
      at[axis] = k;
      const double v = x[0].v[index_of(at, shape)];
      if (v > largest) largest = v, y.v[i] = static_cast<double>(k);
    }
  }
  return {y};
}
const AddReference argmax_reference("argmax", index_of_largest);

}  // namespace
}  // namespace tapedeck::testing
