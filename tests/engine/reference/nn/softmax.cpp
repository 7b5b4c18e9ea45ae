// References of softmax and related ops: plain sums of exponentials along the axis.
#include <tapedeck/tests/engine/reference.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

using Line = std::vector<double>;

// Calls f for every line along the axis with this line of each operand. f returns the line of the result.
Reference along_axis(std::function<Line(const std::vector<Line>&)> f) {
  return [=](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    const int axis = static_cast<int>(attributes_of<AxisAttrs>(e).axis);
    const Shape& shape = out[0].shape;
    Array y = blank(out[0]);
    for (std::size_t i = 0; i < y.v.size(); ++i) {
      auto at = coordinates(static_cast<std::int64_t>(i), shape);
      if (at[axis] != 0) continue;
      std::vector<std::size_t> places;
      for (auto& k = at[axis]; k < shape[axis]; ++k) places.push_back(static_cast<std::size_t>(index_of(at, shape)));
      std::vector<Line> lines;
      for (const Array& a : x) {
        lines.emplace_back();
        for (std::size_t p : places) lines.back().push_back(a.v[p]);
      }
      const Line line = f(lines);
      for (std::size_t k = 0; k < places.size(); ++k) y.v[places[k]] = line[k];
    }
    return std::vector<Array>{y};
  };
}

// log of the sum of e^x. The largest element is taken out first, so that no x overflows.
double log_sum(const Line& x) {
  double largest = -INFINITY, total = 0;
  for (double v : x) largest = std::max(largest, v);
  for (double v : x) total += std::exp(v - largest);
  return largest + std::log(total);
}

Line mapped(Line x, const std::function<double(double)>& f) {
  for (double& v : x) v = f(v);
  return x;
}

const AddReference softmaxes[] = {
    {"softmax", along_axis([](const std::vector<Line>& x) {
       return mapped(x[0], [s = log_sum(x[0])](double v) { return std::exp(v - s); });
     })},
    {"log_softmax",
     along_axis([](const std::vector<Line>& x) { return mapped(x[0], [s = log_sum(x[0])](double v) { return v - s; }); })},
    {"softmax_grad", along_axis([](const std::vector<Line>& x) {
       double inner = 0;
       for (std::size_t k = 0; k < x[0].size(); ++k) inner += x[0][k] * x[1][k];
       Line dx;
       for (std::size_t k = 0; k < x[0].size(); ++k) dx.push_back(x[0][k] * x[1][k] - x[0][k] * inner);
       return dx;
     })},
    {"log_softmax_grad", along_axis([](const std::vector<Line>& x) {
       double total = 0;
       for (double dy : x[1]) total += dy;
       Line dx;
       for (std::size_t k = 0; k < x[0].size(); ++k) dx.push_back(x[1][k] - std::exp(x[0][k]) * total);
       return dx;
     })},
};

std::vector<Array> ones_at_labels(const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    auto at = coordinates(static_cast<std::int64_t>(i), out[0].shape);
    const auto column = static_cast<double>(at.back());
    at.pop_back();
    y.v[i] = x[0].v[index_of(at, x[0].type.shape)] == column;
  }
  return {y};
}
const AddReference one_hot_reference("one_hot", ones_at_labels);

}  // namespace
}  // namespace tapedeck::testing
