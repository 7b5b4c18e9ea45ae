// References of resampling and of windows as columns, element by element from the definitions.
#include <tapedeck/tests/engine/reference/places.h>

#include <tapedeck/kernels/attrs/interpolate.h>
#include <tapedeck/kernels/attrs/unfold.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

// The element of `inner` that element `here` of the larger shape `outer` copies.
At nearest(const Shape& inner, const Shape& outer, At here) {
  for (std::size_t d = 2; d < here.size(); ++d) {
    const int i = static_cast<int>(d);
    here[d] = here[d] * inner[i] / outer[i];
  }
  return here;
}

const AddReference interpolate_nearest_("interpolate_nearest", [](const Example&, const Arrays& x, const Types& out) {
  return Arrays{gather(x[0], out[0], [&](const At& here) { return nearest(x[0].type.shape, out[0].shape, here); })};
});
const AddReference interpolate_nearest_grad_("interpolate_nearest_grad", [](const Example&, const Arrays& x, const Types& out) {
  return Arrays{scatter_add(x[0], out[0], [&](const At& here) { return nearest(out[0].shape, x[0].type.shape, here); })};
});

// The weight of element s of `in` in element i of `out`: a hat function around the position of i in `in`.
double hat(std::int64_t i, std::int64_t s, std::int64_t in, std::int64_t out, bool align) {
  const double n = static_cast<double>(in), m = static_cast<double>(out), k = static_cast<double>(i);
  double place = align ? (out == 1 ? 0 : k * (n - 1) / (m - 1)) : (k + 0.5) * n / m - 0.5;
  place = std::fmin(std::fmax(place, 0), n - 1);
  return std::fmax(0, 1 - std::fabs(place - static_cast<double>(s)));
}

// Sums weight x element over all pairs of elements of one plane. `from_small` says that the operand is the smaller image;
// otherwise it is the larger one (the gradient).
Reference bilinear(bool from_small) {
  return [from_small](const Example& e, const Arrays& x, const Types& out) {
    const bool align = attributes_of<InterpolateBilinearAttrs>(e).align_corners;
    Array y = blank(out[0]);
    for (std::size_t i = 0; i < y.v.size(); ++i)
      for (std::size_t k = 0; k < x[0].v.size(); ++k) {
        const At a = coordinates(static_cast<std::int64_t>(i), out[0].shape);
        const At b = coordinates(static_cast<std::int64_t>(k), x[0].type.shape);
        if (a[0] != b[0] || a[1] != b[1]) continue;
        const Shape &small = from_small ? x[0].type.shape : out[0].shape, &large = from_small ? out[0].shape : x[0].type.shape;
        const At &s = from_small ? b : a, &l = from_small ? a : b;
        y.v[i] += x[0].v[k] * hat(l[2], s[2], small[2], large[2], align) * hat(l[3], s[3], small[3], large[3], align);
      }
    return Arrays{y};
  };
}
const AddReference interpolate_bilinear_("interpolate_bilinear", bilinear(true));
const AddReference interpolate_bilinear_grad_("interpolate_bilinear_grad", bilinear(false));

// The place in the image that element `here` of the columns shows; empty if it lies in the padding.
template <class A>
At shown(const A& a, const Shape& image, const At& here) {
  const std::int64_t kh = a.window[0], kw = a.window[1];
  const std::int64_t across = (image[3] + 2 * a.padding[1] - a.dilation[1] * (kw - 1) - 1) / a.stride[1] + 1;
  const std::int64_t y = here[2] / across * a.stride[0] - a.padding[0] + here[1] / kw % kh * a.dilation[0];
  const std::int64_t x = here[2] % across * a.stride[1] - a.padding[1] + here[1] % kw * a.dilation[1];
  if (y < 0 || y >= image[2] || x < 0 || x >= image[3]) return {};
  return {here[0], here[1] / (kh * kw), y, x};
}

const AddReference unfold_("unfold", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<UnfoldAttrs>(e);
  return Arrays{gather(x[0], out[0], [&](const At& here) { return shown(a, x[0].type.shape, here); })};
});
const AddReference fold_("fold", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<FoldAttrs>(e);
  return Arrays{scatter_add(x[0], out[0], [&](const At& here) { return shown(a, out[0].shape, here); })};
});

}  // namespace
}  // namespace tapedeck::testing
