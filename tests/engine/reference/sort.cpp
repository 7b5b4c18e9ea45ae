// References of sorting: std::stable_sort of the indices of a line.
#include <tapedeck/tests/engine/reference/lines.h>

#include <tapedeck/kernels/attrs/sort.h>

#include <algorithm>
#include <numeric>

namespace tapedeck::testing {
namespace {

std::vector<std::size_t> order_of(const std::vector<double>& line, bool descending) {
  std::vector<std::size_t> order(line.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return descending ? line[a] > line[b] : line[a] < line[b]; });
  return order;
}

std::vector<Array> sorted(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<SortAttrs>(e);
  Array values = blank(x[0].type), indices = blank(out.back());
  for (const auto& places : lines_along(x[0].type.shape, a.axis)) {
    const std::vector<double> line = line_of(x[0], places);
    const std::vector<std::size_t> order = order_of(line, a.descending);
    for (std::size_t i = 0; i < places.size(); ++i) {
      values.v[places[i]] = line[order[i]];
      indices.v[places[i]] = static_cast<double>(order[i]);
    }
  }
  return out.size() == 2 ? std::vector<Array>{values, indices} : std::vector<Array>{indices};
}
const AddReference sort("sort", sorted);
const AddReference argsort("argsort", sorted);

const AddReference topk("topk", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<TopkAttrs>(e);
  Array values = blank(out[0]), indices = blank(out[1]);
  const auto from = lines_along(x[0].type.shape, a.axis), to = lines_along(out[0].shape, a.axis);
  for (std::size_t l = 0; l < to.size(); ++l) {
    const std::vector<double> line = line_of(x[0], from[l]);
    std::vector<std::size_t> order = order_of(line, a.largest);
    order.resize(static_cast<std::size_t>(a.k));
    if (!a.sorted) std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      values.v[to[l][i]] = line[order[i]];
      indices.v[to[l][i]] = static_cast<double>(order[i]);
    }
  }
  return std::vector<Array>{values, indices};
});

const AddReference searchsorted("searchsorted",
                                [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
                                  const bool right = attributes_of<SearchAttrs>(e).right;
                                  Array y = blank(out[0]);
                                  const auto n = static_cast<std::size_t>(x[0].type.shape[x[0].type.shape.rank - 1]);
                                  for (std::size_t i = 0; i < y.v.size(); ++i) {
                                    std::size_t row = 0;
                                    if (x[0].type.shape.rank > 1)
                                      row = i / static_cast<std::size_t>(out[0].shape[out[0].shape.rank - 1]);
                                    for (std::size_t k = 0; k < n; ++k) {
                                      const double element = x[0].v[row * n + k];
                                      y.v[i] += right ? element <= x[1].v[i] : element < x[1].v[i];
                                    }
                                  }
                                  return std::vector<Array>{y};
                                });

}  // namespace
}  // namespace tapedeck::testing
