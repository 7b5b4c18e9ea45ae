// References of products, by plain loops from the definition.
#include <tapedeck/tests/engine/reference/places.h>

namespace tapedeck::testing {
namespace {

const AddReference matmul_("matmul", [](const Example&, const Arrays& x, const Types& out) {
  Array y = blank(out[0]);
  const std::int64_t inner = x[0].type.shape[x[0].type.shape.rank - 1];
  const std::size_t rank = at(out[0].shape.rank);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const At here = coordinates(static_cast<std::int64_t>(i), out[0].shape);
    const auto element = [&](const Array& a, std::int64_t row, std::int64_t column) {
      At own;
      const std::size_t lead = rank - at(a.type.shape.rank);
      for (std::size_t d = lead; d + 2 < rank; ++d) own.push_back(a.type.shape[static_cast<int>(d - lead)] == 1 ? 0 : here[d]);
      own.push_back(row);
      own.push_back(column);
      return a.v[at(index_of(own, a.type.shape))];
    };
    for (std::int64_t k = 0; k < inner; ++k) y.v[i] += element(x[0], here[rank - 2], k) * element(x[1], k, here[rank - 1]);
  }
  return Arrays{y};
});

const AddReference linear_("linear", [](const Example&, const Arrays& x, const Types& out) {
  Array y = blank(out[0]);
  const std::size_t inner = at(x[1].type.shape[0]), columns = at(x[1].type.shape[1]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    if (x.size() > 2) y.v[i] = x[2].v[i % columns];
    for (std::size_t k = 0; k < inner; ++k) y.v[i] += x[0].v[i / columns * inner + k] * x[1].v[k * columns + i % columns];
  }
  return Arrays{y};
});

}  // namespace
}  // namespace tapedeck::testing
