// Resize and Upsample. Along each axis an element of the result is a weighted sum of elements of the operand, whose places and
// weights are known at import; so every mode is one product of gathers. The common cases are an op of their own.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

namespace tapedeck::onnx {

namespace {

constexpr std::int64_t kMostElements = 1 << 22;  // along an axis whose places are computed one by one

struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false;
  Integers sizes;              // of the result
  std::vector<double> scales;  // by axis
};

double place_of(const Resizing& r, std::int64_t i, std::int64_t in, std::int64_t out, double scale) {
  const auto at = static_cast<double>(i);
  if (r.coordinates == "align_corners") {
    const double whole = scale * static_cast<double>(in);  // may be a fraction where the scale is given
    return whole > 1 ? at * static_cast<double>(in - 1) / (whole - 1) : 0;
  }
  if (r.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
  if (r.coordinates == "asymmetric") return at / scale;
  if (r.coordinates == "pytorch_half_pixel") return out > 1 ? (at + 0.5) / scale - 0.5 : 0;
  if (r.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(out) / (scale * static_cast<double>(in)),
                 centre = static_cast<double>(in) / 2;
    return centre * (1 - adjustment) + (at + 0.5) / scale - 0.5;
  }
  return (at + 0.5) / scale - 0.5;  // half_pixel
}

std::int64_t nearest_place(const Resizing& r, double place) {
  if (r.nearest == "floor") return static_cast<std::int64_t>(std::floor(place));
  if (r.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  if (r.nearest == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(place + 0.5));
  return static_cast<std::int64_t>(std::ceil(place - 0.5));
}

// The weights of the elements around a place, of which `part` says how far it is behind the second one.
std::vector<double> weights_of(const Resizing& r, double part) {
  if (r.mode == "nearest") return {1};
  if (r.mode == "linear") return {1 - part, part};
  const double a = r.cubic;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return a * (((d - 5) * d + 8) * d - 4); };
  return {far(1 + part), near(part), near(1 - part), far(2 - part)};
}

Tensor resize_axis(const NodeCall& n, const Resizing& r, const Tensor& x, std::int64_t axis) {
  const std::int64_t in = x.size(static_cast<int>(axis)), out = r.sizes[static_cast<std::size_t>(axis)];
  const double scale = r.scales[static_cast<std::size_t>(axis)];
  n.require(out <= kMostElements, "an axis of the result is too large");
  const std::size_t taps = weights_of(r, 0).size();
  std::vector<Integers> places(taps, Integers(static_cast<std::size_t>(out)));
  std::vector<std::vector<double>> weights(taps, std::vector<double>(static_cast<std::size_t>(out)));
  for (std::int64_t i = 0; i < out; ++i) {
    const double place = place_of(r, i, in, out, scale);
    const bool nearest = r.mode == "nearest";
    const std::int64_t low = nearest ? nearest_place(r, place) : static_cast<std::int64_t>(std::floor(place));
    std::vector<double> w = weights_of(r, place - std::floor(place));
    const std::int64_t first = low - (taps == 4 ? 1 : 0);
    if (r.excludes_outside) {
      double sum = 0;
      for (std::size_t t = 0; t < taps; ++t) {
        const std::int64_t at = first + static_cast<std::int64_t>(t);
        if (at < 0 || at >= in) w[t] = 0;
        sum += w[t];
      }
      for (double& weight : w) weight /= sum;
    }
    for (std::size_t t = 0; t < taps; ++t) {
      places[t][static_cast<std::size_t>(i)] = std::clamp<std::int64_t>(first + static_cast<std::int64_t>(t), 0, in - 1);
      weights[t][static_cast<std::size_t>(i)] = w[t];
    }
  }
  Integers line(static_cast<std::size_t>(x.rank()), 1);
  line[static_cast<std::size_t>(axis)] = out;
  Tensor sum;
  for (std::size_t t = 0; t < taps; ++t) {
    const Tensor rows = index_select(n.arg(x), axis, known_integers(places[t]));
    if (taps == 1) return rows;
    const std::vector<float> w(weights[t].begin(), weights[t].end());
    const Tensor factor = known_tensor({DType::f32, n.shape(line)}, w.data());
    const Tensor term = mul(n.arg(rows), x.dtype() == DType::f32 ? factor : cast(n.arg(factor), x.dtype()));
    sum = sum.defined() ? add(n.arg(sum), term) : term;
  }
  return sum;
}

// The ops of Tapedeck resize all spatial dimensions of [n,c,...] by out / in.
bool is_an_op(const Resizing& r, const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5 || r.sizes[0] != x.size(0) || r.sizes[1] != x.size(1)) return false;
  for (int i = 2; i < x.rank(); ++i) {
    const double plain = static_cast<double>(r.sizes[static_cast<std::size_t>(i)]) / static_cast<double>(x.size(i));
    if (std::abs(r.scales[static_cast<std::size_t>(i)] - plain) > 1e-9 * plain) return false;
  }
  if (r.mode == "nearest") return r.coordinates == "asymmetric" && r.nearest == "floor";
  return r.mode == "linear" && x.rank() == 4 && is_floating(x.dtype()) && !r.excludes_outside &&
         (r.coordinates == "half_pixel" || r.coordinates == "align_corners");
}

Tensors resized(const NodeCall& n, const Resizing& r) {
  const Tensor& x = n[0];
  for (int i = 0; i < x.rank(); ++i)
    n.require(r.sizes[static_cast<std::size_t>(i)] >= 0 && (x.size(i) > 0 || r.sizes[static_cast<std::size_t>(i)] == 0),
              "there is nothing to resize");
  n.require(checked_bytes(DType::f64, r.sizes) >= 0, "the result is too large");
  if (is_an_op(r, x)) {
    const Ints size = n.list({r.sizes.begin() + 2, r.sizes.end()});
    if (r.mode == "nearest") return {interpolate(n.arg(0), size)};
    return {interpolate(n.arg(0), size, "bilinear", r.coordinates == "align_corners")};
  }
  Tensor y = x;
  for (int i = 0; i < x.rank(); ++i)
    if (r.sizes[static_cast<std::size_t>(i)] != x.size(i) || r.scales[static_cast<std::size_t>(i)] != 1)
      y = resize_axis(n, r, y, i);
  return {y.impl() == x.impl() ? alias(n.arg(0)) : y};
}

Integers scaled_sizes(const NodeCall& n, const std::vector<double>& scales) {
  Integers sizes;
  for (int i = 0; i < n[0].rank(); ++i) {
    const double size = std::floor(static_cast<double>(n[0].size(i)) * scales[static_cast<std::size_t>(i)]);
    n.require(scales[static_cast<std::size_t>(i)] > 0 && size < 1e12, "a scale must be positive and not huge");
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  return sizes;
}

// `keep_aspect_ratio_policy` makes one scale of all axes: the smallest or the largest one.
void keep_aspect(const NodeCall& n, Resizing& r, const Integers& axes) {
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return;
  std::vector<double> scales;
  for (std::int64_t a : axes) scales.push_back(r.scales[static_cast<std::size_t>(a)]);
  const double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                              : *std::max_element(scales.begin(), scales.end());
  for (std::int64_t a : axes) {
    const auto i = static_cast<std::size_t>(a);
    r.scales[i] = scale;
    r.sizes[i] = std::llround(scale * static_cast<double>(n[0].size(static_cast<int>(a))));
  }
}

Tensors resize(NodeCall& n) {
  Resizing r;
  r.mode = n.text("mode", "nearest");
  r.coordinates = n.text("coordinate_transformation_mode", n.opset() < 11 ? "asymmetric" : "half_pixel");
  r.nearest = n.text("nearest_mode", n.opset() < 11 ? "floor" : "round_prefer_floor");
  r.cubic = n.real("cubic_coeff_a", -0.75);
  r.excludes_outside = n.flag("exclude_outside");
  n.require(r.mode == "nearest" || r.mode == "linear" || r.mode == "cubic", "the mode '" + r.mode + "' is not supported");
  static const std::set<std::string> known = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                              "align_corners", "asymmetric",           "tf_half_pixel_for_nn"};
  n.require(known.count(r.coordinates) > 0, "the mode of coordinates '" + r.coordinates + "' is not supported");
  n.require(!n.flag("antialias"), "antialias is not supported");
  const auto rank = static_cast<std::size_t>(n[0].rank());
  Integers axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes", axes);
  for (std::int64_t& a : axes) a = n.axis(a, n[0].rank());
  const std::size_t scales_at = n.opset() < 11 ? 1 : 2;
  r.scales.assign(rank, 1);
  r.sizes = {n[0].shape().begin(), n[0].shape().end()};
  if (n.has(3)) {
    const Integers sizes = n.integers(3);
    n.require(sizes.size() == axes.size(), "there must be one size for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto a = static_cast<std::size_t>(axes[i]);
      r.sizes[a] = sizes[i];
      r.scales[a] =
          static_cast<double>(sizes[i]) / static_cast<double>(std::max<std::int64_t>(1, n[0].size(static_cast<int>(axes[i]))));
    }
    keep_aspect(n, r, axes);
  } else {
    const std::vector<double> scales = n.reals(scales_at);
    n.require(scales.size() == axes.size(), "there must be one scale for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) r.scales[static_cast<std::size_t>(axes[i])] = scales[i];
    r.sizes = scaled_sizes(n, r.scales);
  }
  return resized(n, r);
}

Tensors upsample(NodeCall& n) {
  Resizing r;
  r.mode = n.text("mode", "nearest");
  n.require(r.mode == "nearest" || r.mode == "linear", "the mode '" + r.mode + "' is not supported");
  r.coordinates = "asymmetric";
  r.nearest = "floor";
  r.scales = n.opset() < 9 ? n.reals("scales") : n.reals(1);
  n.require(r.scales.size() == static_cast<std::size_t>(n[0].rank()), "there must be one scale for each axis");
  r.sizes = scaled_sizes(n, r.scales);
  return resized(n, r);
}

}  // namespace

std::vector<OnnxOp> resize_ops() {
  return {
      {"Resize", 10,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
       "keep_aspect_ratio_policy "
       "mode nearest_mode",
       resize},
      {"Upsample", 7, "mode scales", upsample, 10},
  };
}

}  // namespace tapedeck::onnx
