// References of convolutions by the definition, in any number of dimensions: one loop over all triples (result, kernel
// element, channel).
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/engine/ops/conv.h>

namespace tapedeck::testing {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t number_of(const Ints& list, int i) { return list.size == 1 ? list[0] : list[i]; }

// Calls f(index in x, index in w, index in y) for every product of the convolution. The indices are flat.
template <class Attrs, class F>
void for_products(const Shape& x, const Shape& w, const Shape& y, const Attrs& a, F&& f) {
  std::vector<Index> weights;
  for (std::int64_t j = 0; j < w.numel(); ++j) weights.push_back(coordinates(j, w));
  const std::size_t per_channel = w[0] > 0 ? weights.size() / static_cast<std::size_t>(w[0]) : 0;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const Index result = coordinates(i, y);
    Index from = result;
    for (std::size_t j = static_cast<std::size_t>(result[1]) * per_channel, end = j + per_channel; j < end; ++j) {
      from[1] = result[1] / (w[0] / a.groups) * w[1] + weights[j][1];
      bool inside = true;
      for (int d = 2; d < x.rank; ++d) {
        const auto u = static_cast<std::size_t>(d);
        from[u] =
            result[u] * number_of(a.stride, d - 2) + weights[j][u] * number_of(a.dilation, d - 2) - number_of(a.padding, d - 2);
        inside = inside && from[u] >= 0 && from[u] < x[d];
      }
      if (inside) f(static_cast<std::size_t>(index_of(from, x)), j, static_cast<std::size_t>(i));
    }
  }
}

std::vector<Array> conv_forward(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_products(x[0].type.shape, x[1].type.shape, y.type.shape, attributes_of<ConvAttrs>(e),
               [&](std::size_t i, std::size_t j, std::size_t k) { y.v[k] += x[0].v[i] * x[1].v[j]; });
  return {y};
}

std::vector<Array> input_grad(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  for_products(dx.type.shape, x[1].type.shape, x[0].type.shape, attributes_of<ConvInputGradAttrs>(e),
               [&](std::size_t i, std::size_t j, std::size_t k) { dx.v[i] += x[0].v[k] * x[1].v[j]; });
  return {dx};
}

std::vector<Array> weight_grad(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array dw = blank(out[0]);
  for_products(x[1].type.shape, dw.type.shape, x[0].type.shape, attributes_of<ConvWeightGradAttrs>(e),
               [&](std::size_t i, std::size_t j, std::size_t k) { dw.v[j] += x[0].v[k] * x[1].v[i]; });
  return {dw};
}

// Tolerance of f32 relative to 1, because some hundred products of up to 4 may cancel.
constexpr double kTolerance = 1e-4;

const AddReference conv2d_reference("conv2d", conv_forward, kTolerance), conv3d_reference("conv3d", conv_forward, kTolerance);
const AddReference input2d("conv2d_input_grad", input_grad, kTolerance), input3d("conv3d_input_grad", input_grad, kTolerance);
const AddReference weight2d("conv2d_weight_grad", weight_grad, kTolerance),
    weight3d("conv3d_weight_grad", weight_grad, kTolerance);

}  // namespace
}  // namespace tapedeck::testing
