// Resize and Upsample. Along each axis an element of the result is a weighted sum of elements of the operand, whose places and
// weights are known at import; so every mode is one product of gathers. The common cases are an op of their own.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace tapedeck::onnx {

namespace {

constexpr std::size_t kMostTaps = 256;
constexpr std::int64_t kMostElements = 1 << 22;  // along an axis whose places are computed one by one

struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false, antialias = false;
  double outside = 0;                            // what lies outside of the operand, with tf_crop_and_resize
  std::vector<std::pair<double, double>> crops;  // by axis: which part of the operand is resized
  Integers sizes;                                // of the result
  std::vector<double> scales;                    // by axis
};

double place_of(const Resizing& r, std::int64_t i, std::size_t axis, std::int64_t in, std::int64_t out) {
  const auto at = static_cast<double>(i), last = static_cast<double>(in - 1);
  const double scale = r.scales[axis];
  if (r.coordinates == "align_corners") {
    const double whole = scale * static_cast<double>(in);  // may be a fraction where the scale is given
    return whole > 1 ? at * last / (whole - 1) : 0;
  }
  if (r.coordinates == "tf_crop_and_resize") {
    const auto [start, end] = r.crops[axis];
    return out > 1 ? start * last + at * (end - start) * last / static_cast<double>(out - 1) : 0.5 * (start + end) * last;
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

std::int64_t nearest_place(const Resizing& r, double place, double scale) {
  if (r.nearest == "by_scale") return static_cast<std::int64_t>(scale < 1 ? std::ceil(place) : std::floor(place));
  if (r.nearest == "floor") return static_cast<std::int64_t>(std::floor(place));
  if (r.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  if (r.nearest == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(place + 0.5));
  return static_cast<std::int64_t>(std::ceil(place - 0.5));
}

double cubic_weight(double a, double d) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

// The weights of the elements around a place, and how many elements before the one in front of the place the first of them is.
// With antialias, a smaller result takes more elements into account.
struct Taps {
  std::int64_t before = 0;
  std::vector<double> weights;
};

Taps taps_of(const Resizing& r, double part, double scale) {
  if (r.mode == "nearest") return {0, {1}};
  const double narrow = r.antialias ? std::min(scale, 1.0) : 1, reach = r.mode == "linear" ? 1 : 2;
  const auto before = static_cast<std::int64_t>(-(std::floor(-reach / narrow) + 1));
  Taps taps{before, {}};
  double sum = 0;
  for (std::int64_t i = -before; i < 2 + before; ++i) {
    const double d = (static_cast<double>(i) - part) * narrow;
    taps.weights.push_back(r.mode == "linear" ? std::clamp(1 - std::abs(d), 0.0, 1.0) : cubic_weight(r.cubic, d));
    sum += taps.weights.back();
  }
  for (double& w : taps.weights) w /= sum;
  return taps;
}

// True in the places of an axis that lie outside of the operand.
Tensor outside_of(const NodeCall& n, const std::vector<double>& places, std::int64_t in, const Integers& line) {
  std::vector<unsigned char> outside;
  for (double place : places) outside.push_back(place < 0 || place > static_cast<double>(in - 1) ? 1 : 0);
  return known_tensor({DType::boolean, n.shape(line)}, outside.data());
}

Tensor resize_axis(const NodeCall& n, const Resizing& r, const Tensor& x, std::size_t axis) {
  const std::int64_t in = x.size(static_cast<int>(axis)), out = r.sizes[axis];
  n.require(!r.antialias || r.scales[axis] > 4.0 / static_cast<double>(kMostTaps), "antialias would join too many elements");
  const std::size_t taps = taps_of(r, 0, r.scales[axis]).weights.size();
  n.require(out <= kMostElements / static_cast<std::int64_t>(taps), "an axis of the result is too large");
  std::vector<Integers> at(taps, Integers(static_cast<std::size_t>(out)));
  std::vector<std::vector<double>> weights(taps, std::vector<double>(static_cast<std::size_t>(out)));
  std::vector<double> places;
  for (std::int64_t i = 0; i < out; ++i) {
    const double place = place_of(r, i, axis, in, out);
    n.require(std::abs(place) < 0x1p52, "an element of the result lies too far outside of the operand");  // nor is it a NaN
    places.push_back(place);
    const std::int64_t low =
        r.mode == "nearest" ? nearest_place(r, place, r.scales[axis]) : static_cast<std::int64_t>(std::ceil(place)) - 1;
    Taps t = taps_of(r, place - static_cast<double>(low), r.scales[axis]);
    const std::int64_t first = low - t.before;
    if (r.excludes_outside) {
      double sum = 0;
      for (std::size_t k = 0; k < taps; ++k) {
        const std::int64_t element = first + static_cast<std::int64_t>(k);
        if (element < 0 || element >= in) t.weights[k] = 0;
        sum += t.weights[k];
      }
      for (double& weight : t.weights) weight /= sum;
    }
    for (std::size_t k = 0; k < taps; ++k) {
      at[k][static_cast<std::size_t>(i)] = std::clamp<std::int64_t>(first + static_cast<std::int64_t>(k), 0, in - 1);
      weights[k][static_cast<std::size_t>(i)] = t.weights[k];
    }
  }
  Integers line(static_cast<std::size_t>(x.rank()), 1);
  line[axis] = out;
  Tensor sum;
  for (std::size_t k = 0; k < taps; ++k) {
    Tensor term = index_select(n.arg(x), static_cast<std::int64_t>(axis), known_integers(at[k]));
    if (taps > 1) {
      const std::vector<float> w(weights[k].begin(), weights[k].end());
      const Tensor factor = known_tensor({DType::f32, n.shape(line)}, w.data());
      term = mul(n.arg(term), x.dtype() == DType::f32 ? factor : cast(n.arg(factor), x.dtype()));
    }
    sum = sum.defined() ? add(n.arg(sum), term) : term;
  }
  if (r.coordinates == "tf_crop_and_resize") sum = where(n.arg(outside_of(n, places, in, line)), r.outside, sum);
  return sum;
}

bool grows(const Resizing& r) {
  return std::all_of(r.scales.begin(), r.scales.end(), [](double scale) { return scale >= 1; });
}

// The ops of Tapedeck resize all spatial dimensions of [n,c,...] by out / in.
bool is_an_op(const Resizing& r, const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5 || r.sizes[0] != x.size(0) || r.sizes[1] != x.size(1)) return false;
  for (int i = 2; i < x.rank(); ++i) {
    const double plain = static_cast<double>(r.sizes[static_cast<std::size_t>(i)]) / static_cast<double>(x.size(i));
    if (std::abs(r.scales[static_cast<std::size_t>(i)] - plain) > 1e-9 * plain) return false;
  }
  if (r.mode == "nearest")
    return r.coordinates == "asymmetric" && (r.nearest == "floor" || (r.nearest == "by_scale" && grows(r)));
  if (r.antialias) return false;
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
  for (std::size_t i = 0; i < r.sizes.size(); ++i) {
    const bool whole = r.crops.empty() || r.crops[i] == std::make_pair(0.0, 1.0);
    if (!whole || r.sizes[i] != x.size(static_cast<int>(i)) || r.scales[i] != 1) y = resize_axis(n, r, y, i);
  }
  return {y.impl() == x.impl() ? alias(n.arg(0)) : y};
}

Integers scaled_sizes(const NodeCall& n, const Resizing& r) {
  Integers sizes;
  for (std::size_t i = 0; i < r.scales.size(); ++i) {
    const double part = r.crops.empty() ? 1 : r.crops[i].second - r.crops[i].first;
    const double size = std::floor(static_cast<double>(n[0].size(static_cast<int>(i))) * part * r.scales[i]);
    n.require(r.scales[i] > 0 && size >= 0 && size < 1e12, "a scale must be positive and not huge");
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  return sizes;
}

// The operand `roi` has the starts of all axes, then their ends, in parts of the axes.
void take_crops(const NodeCall& n, Resizing& r, const Integers& axes) {
  const std::vector<double> roi = n.reals(1);
  n.require(roi.size() == 2 * axes.size(), "there must be a start and an end for each axis");
  r.crops.assign(static_cast<std::size_t>(n[0].rank()), {0, 1});
  for (std::size_t i = 0; i < axes.size(); ++i) r.crops[static_cast<std::size_t>(axes[i])] = {roi[i], roi[i + axes.size()]};
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
  r.nearest = n.text("nearest_mode", n.opset() < 11 ? "by_scale" : "round_prefer_floor");
  r.cubic = n.real("cubic_coeff_a", -0.75);
  r.excludes_outside = n.flag("exclude_outside");
  n.require(r.mode == "nearest" || r.mode == "linear" || r.mode == "cubic", "the mode '" + r.mode + "' is not supported");
  static const std::set<std::string> known = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                              "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  n.require(known.count(r.coordinates) > 0, "the mode of coordinates '" + r.coordinates + "' is not supported");
  r.antialias = n.flag("antialias");
  r.outside = n.real("extrapolation_value", 0);
  const auto rank = static_cast<std::size_t>(n[0].rank());
  Integers axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes", axes);
  for (std::int64_t& a : axes) a = n.axis(a, n[0].rank());
  if (r.coordinates == "tf_crop_and_resize") take_crops(n, r, axes);
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
    r.sizes = scaled_sizes(n, r);
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
  r.sizes = scaled_sizes(n, r);
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
