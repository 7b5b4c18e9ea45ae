// First values of tensors. Every function draws a tensor of the same shape and copies it over the weight.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/initialise.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tapedeck {
namespace {

// Draws values by draw(shape, dtype) from the stream of the weight's name, and writes them over the weight.
template <class Draw>
Tensor fill_with(const char* what, const Arg& weight, Draw&& draw) {
  const Tensor& w = weight.tensor();
  if (!w.defined() || !is_floating(w.dtype()))
    throw TypeError(error_text(
        what, w.defined() ? fmt::format("{} holds integers", to_string(w.type())) : "the tensor is undefined", weight.site()));
  const NoGrad no_grad;
  const Tensor values = [&] {
    const Scoped<Name> path(thread_state().path, w.name());
    return draw(w.shape(), w.dtype() == DType::f64 ? DType::f64 : DType::f32);
  }();
  copy_(w, Arg(values, weight.site().file, weight.site().line));
  return w;
}

Tensor fill_uniform(const char* what, const Arg& weight, double bound) {
  return fill_with(what, weight,
                   [&](const Shape& shape, DType dtype) { return uniform(shape, -bound, bound, dtype, weight.site()); });
}

Tensor fill_normal(const char* what, const Arg& weight, double deviation) {
  return fill_with(what, weight,
                   [&](const Shape& shape, DType dtype) { return normal(shape, 0, deviation, dtype, weight.site()); });
}

// The fans of a weight. A fan of an empty weight counts as 1, because nothing is drawn then.
Fans fans_of_weight(const char* what, const Arg& weight) {
  const Tensor& w = weight.tensor();
  if (!w.defined()) throw TypeError(error_text(what, "the tensor is undefined", weight.site()));
  if (w.rank() < 2)
    throw TypeError(error_text(what, fmt::format("{} has no fan: a weight has at least two dimensions", to_string(w.type())),
                               weight.site()));
  const Fans fans = fans_of(w.shape());
  return {std::max<std::int64_t>(fans.in, 1), std::max<std::int64_t>(fans.out, 1)};
}

double xavier_deviation(const char* what, const Arg& weight, double gain) {
  const Fans fans = fans_of_weight(what, weight);
  return gain * std::sqrt(2 / (static_cast<double>(fans.in) + static_cast<double>(fans.out)));
}

double kaiming_deviation(const char* what, const Arg& weight, const KaimingOptions& o) {
  const Fans fans = fans_of_weight(what, weight);
  return gain_of(o.nonlinearity, o.slope) / std::sqrt(static_cast<double>(o.mode == Fan::in ? fans.in : fans.out));
}

// ---- orthonormal vectors ----

// Makes vectors of equal length orthonormal, one after another (Gram and Schmidt). A second pass removes the parts along the
// earlier vectors that rounding left. Each vector keeps a positive product with the vector that it came from, so normal draws
// give every orthonormal set with equal probability. Returns false if a vector depends on the earlier ones.
bool make_orthonormal(std::vector<double>& vectors, std::size_t length) {
  const std::size_t count = length == 0 ? 0 : vectors.size() / length;
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t k = 0; k < count; ++k) {
    double* const v = vectors.data() + k * length;
    const double before = std::sqrt(dot(v, v));
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < k; ++j) {
        const double* const q = vectors.data() + j * length;
        const double along = dot(q, v);
        for (std::size_t i = 0; i < length; ++i) v[i] -= along * q[i];
      }
    const double norm = std::sqrt(dot(v, v));
    if (!(norm > 1e-12 * before)) return false;
    for (std::size_t i = 0; i < length; ++i) v[i] /= norm;
  }
  return true;
}

// The fewer of the rows and columns of a matrix [rows,columns] become orthonormal, times gain.
void orthogonalise(std::vector<double>& matrix, std::size_t rows, std::size_t columns, double gain, Site site) {
  const bool by_rows = rows <= columns;
  const std::size_t count = by_rows ? rows : columns, length = by_rows ? columns : rows;
  const auto place = [&](std::size_t k, std::size_t i) { return by_rows ? k * columns + i : i * columns + k; };
  std::vector<double> vectors(matrix.size());
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i < length; ++i) vectors[k * length + i] = matrix[place(k, i)];
  if (!make_orthonormal(vectors, length))
    throw ExecutionError(error_text("orthogonal_", "the drawn vectors depend on each other; draw again", site));
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i < length; ++i) matrix[place(k, i)] = gain * vectors[k * length + i];
}

}  // namespace

double gain_of(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      return 1;
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 0.75;
  }
  return 1;
}

Fans fans_of(const Shape& weight) {
  if (weight.rank < 2)
    throw TypeError(
        error_text("fans_of", fmt::format("{} has no fan: a weight has at least two dimensions", to_string(weight)), {}));
  if (weight.rank == 2) return {weight[0], weight[1]};
  std::int64_t window = 1;
  for (int d = 2; d < weight.rank; ++d) window *= weight[d];
  return {weight[1] * window, weight[0] * window};
}

Tensor xavier_uniform_(const Arg& weight, double gain) {
  return fill_uniform("xavier_uniform_", weight, std::sqrt(3.0) * xavier_deviation("xavier_uniform_", weight, gain));
}

Tensor xavier_normal_(const Arg& weight, double gain) {
  return fill_normal("xavier_normal_", weight, xavier_deviation("xavier_normal_", weight, gain));
}

Tensor kaiming_uniform_(const Arg& weight, KaimingOptions options) {
  return fill_uniform("kaiming_uniform_", weight, std::sqrt(3.0) * kaiming_deviation("kaiming_uniform_", weight, options));
}

Tensor kaiming_normal_(const Arg& weight, KaimingOptions options) {
  return fill_normal("kaiming_normal_", weight, kaiming_deviation("kaiming_normal_", weight, options));
}

Tensor orthogonal_(const Arg& weight, double gain) {
  fans_of_weight("orthogonal_", weight);  // at least two dimensions
  return fill_with("orthogonal_", weight, [&](const Shape& shape, DType) {
    const Tensor drawn = normal(shape, 0, 1, DType::f64, weight.site());
    if (drawn.abstract() || drawn.numel() == 0) return drawn;
    std::vector<double> matrix = drawn.to_vector<double>(weight.site());
    const auto rows = static_cast<std::size_t>(shape[0]);
    orthogonalise(matrix, rows, matrix.size() / rows, gain, weight.site());
    return from_vector(matrix, shape);
  });
}

Tensor truncated_normal_(const Arg& weight, double mean, double deviation, double low, double high) {
  return fill_with("truncated_normal_", weight, [&](const Shape& shape, DType dtype) {
    return trunc_normal(shape, mean, deviation, low, high, dtype, weight.site());
  });
}

}  // namespace tapedeck
