// References of the scans: each element is computed anew from all elements before it.
#include <tapedeck/tests/engine/reference/lines.h>

#include <tapedeck/kernels/attrs/scan.h>

#include <algorithm>

namespace tapedeck::testing {
namespace {

using Line = std::vector<double>;

// y[i] = f(the elements up to i, in the order of the scan).
Array scanned(const Array& x, std::int64_t axis, bool exclusive, bool reverse, const std::function<double(const Line&)>& f) {
  Array y = blank(x.type);
  for (auto places : lines_along(x.type.shape, axis)) {
    if (reverse) std::reverse(places.begin(), places.end());
    const Line line = line_of(x, places);
    for (std::size_t i = 0; i < line.size(); ++i)
      y.v[places[i]] = f(Line(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(exclusive ? i : i + 1)));
  }
  return y;
}

Reference scan(const std::function<double(const Line&)>& f) {
  return [f](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
    const auto& a = attributes_of<ScanAttrs>(e);
    return std::vector<Array>{scanned(x[0], a.axis, a.exclusive, a.reverse, f)};
  };
}

const AddReference cumsum("cumsum", scan([](const Line& v) {
                            double total = 0;
                            for (double x : v) total += x;
                            return total;
                          }));
const AddReference cumprod("cumprod", scan([](const Line& v) {
                             double total = 1;
                             for (double x : v) total *= x;
                             return total;
                           }));

const AddReference logcumsumexp("logcumsumexp", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  const auto& a = attributes_of<LinearScanAttrs>(e);
  return std::vector<Array>{scanned(x[0], a.axis, false, a.reverse, [](const Line& v) {
    double total = 0;
    for (double element : v) total += std::exp(element);
    return std::log(total);
  })};
});

// y[i] is the sum over j <= i of b[j] times a[j+1] ... a[i].
const AddReference linear_scan("linear_scan", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  const auto& attrs = attributes_of<LinearScanAttrs>(e);
  Array y = blank(x[0].type);
  for (auto places : lines_along(y.type.shape, attrs.axis)) {
    if (attrs.reverse) std::reverse(places.begin(), places.end());
    const Line a = line_of(x[0], places), b = line_of(x[1], places);
    for (std::size_t i = 0; i < places.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double term = b[j];
        for (std::size_t k = j + 1; k <= i; ++k) term *= a[k];
        y.v[places[i]] += term;
      }
  }
  return std::vector<Array>{y};
});

Reference running(bool largest) {
  return [largest](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    Array values = blank(out[0]), indices = blank(out[1]);
    for (const auto& places : lines_along(x[0].type.shape, attributes_of<AxisAttrs>(e).axis)) {
      const Line line = line_of(x[0], places);
      for (std::size_t i = 0; i < line.size(); ++i) {
        std::size_t best = i;
        for (std::size_t k = 0; k <= i; ++k)
          if (largest ? line[k] > line[best] : line[k] < line[best]) best = k;
        for (std::size_t k = best; k <= i; ++k)
          if (line[k] == line[best]) best = k;
        values.v[places[i]] = line[best];
        indices.v[places[i]] = static_cast<double>(best);
      }
    }
    return std::vector<Array>{values, indices};
  };
}
const AddReference cummax("cummax", running(true));
const AddReference cummin("cummin", running(false));

}  // namespace
}  // namespace tapedeck::testing
