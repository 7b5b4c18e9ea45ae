// The reference of the matrix product: a sum over k for each element.
#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {
namespace {

// The entry in row r and column c of the operand's matrix for the result's leading coordinates `at`. Leading dimensions
// broadcast.
double entry(const Array& x, std::vector<std::int64_t> at, std::int64_t r, std::int64_t c) {
  const Shape& shape = x.type.shape;
  at[at.size() - 2] = r;
  at[at.size() - 1] = c;
  at.erase(at.begin(), at.end() - shape.rank);
  for (int d = 0; d < shape.rank - 2; ++d)
    if (shape[d] == 1) at[d] = 0;
  return x.v[index_of(at, shape)];
}

const AddReference matmul_reference("matmul", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  const std::int64_t inner = x[0].type.shape[x[0].type.shape.rank - 1];
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const auto at = coordinates(static_cast<std::int64_t>(i), out[0].shape);
    for (std::int64_t k = 0; k < inner; ++k) y.v[i] += entry(x[0], at, at[at.size() - 2], k) * entry(x[1], at, k, at.back());
  }
  return std::vector<Array>{y};
});

}  // namespace
}  // namespace tapedeck::testing
