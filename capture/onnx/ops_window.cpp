// Convolutions and pools.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>
#include <limits>

namespace tapedeck::onnx {

namespace {

// The geometry of windows over the spatial dimensions.
struct Windows {
  std::size_t dims = 0;
  Integers window, stride, dilation, before, after;
  Ints padding(const NodeCall& n) const {
    Integers all = before;
    all.insert(all.end(), after.begin(), after.end());
    return n.list(all);
  }
};

constexpr std::int64_t kMost = 1 << 24;  // of a stride, a window, a pad

Integers positive(const NodeCall& n, const char* name, const Integers& otherwise) {
  const Integers list = n.integers(name, otherwise);
  n.require(list.size() == otherwise.size(),
            std::string("there must be one number for each spatial dimension in '") + name + "'");
  for (std::int64_t v : list)
    n.require(v > 0 && v < kMost, std::string("the numbers in '") + name + "' must be positive and not huge");
  return list;
}

// `window` is that of the weights, or empty where the attribute says it.
Windows windows_of(const NodeCall& n, const Integers& window) {
  Windows w;
  n.require(n[0].rank() >= 3 && n[0].rank() <= 5, "the operand must be [n,c,spatial...] with one to three spatial dimensions");
  w.dims = static_cast<std::size_t>(n[0].rank() - 2);
  for (int i = 2; i < n[0].rank(); ++i) n.require(n[0].size(i) < std::int64_t{1} << 31, "a spatial dimension is too large");
  for (std::int64_t size : window) n.require(size < kMost, "a window is too large");
  const Integers ones(w.dims, 1);
  w.window = window.empty() ? positive(n, "kernel_shape", ones) : window;
  w.stride = positive(n, "strides", ones);
  w.dilation = positive(n, "dilations", ones);
  Integers pads = n.integers("pads", Integers(2 * w.dims, 0));
  n.require(pads.size() == 2 * w.dims && w.window.size() == w.dims, "there must be two pads for each spatial dimension");
  for (std::int64_t p : pads) n.require(p >= 0 && p < kMost, "a pad must not be negative nor huge");
  const std::string automatic = n.text("auto_pad", "NOTSET");
  n.require(automatic == "NOTSET" || automatic == "VALID" || automatic == "SAME_UPPER" || automatic == "SAME_LOWER",
            "the attribute 'auto_pad' has an unknown value");
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(w.dims));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(w.dims), pads.end());
  if (automatic == "VALID") w.before = w.after = Integers(w.dims, 0);
  return w;
}

// SAME: the result has ceil(size / stride) elements; an odd pad is one larger behind (UPPER) or in front (LOWER).
void pad_to_same_size(const NodeCall& n, Windows& w) {
  const std::string automatic = n.text("auto_pad", "NOTSET");
  if (!automatic.starts_with("SAME")) return;
  for (std::size_t i = 0; i < w.dims; ++i) {
    const std::int64_t size = n[0].size(static_cast<int>(i) + 2), out = (size + w.stride[i] - 1) / w.stride[i];
    const std::int64_t all = std::max<std::int64_t>(0, (out - 1) * w.stride[i] + (w.window[i] - 1) * w.dilation[i] + 1 - size);
    w.before[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    w.after[i] = all - w.before[i];
  }
}

Integers window_of(const NodeCall& n, const Tensor& weights) {
  n.require(n[0].rank() >= 3, "the operand must be [n,c,spatial...]");
  n.require(weights.rank() == n[0].rank(), "the weights must have as many dimensions as the operand");
  return {weights.shape().begin() + 2, weights.shape().end()};
}

Tensors convolve(NodeCall& n) {
  Windows w = windows_of(n, window_of(n, n[1]));
  pad_to_same_size(n, w);
  const ConvAttrs attrs{n.list(w.stride), w.padding(n), n.list(w.dilation), n.integer("group", 1)};
  const auto run = [&](auto conv) {
    return n.has(2) ? conv(n.arg(0), n[1], n[2], attrs) : conv(n.arg(0), n[1], Tensor(), attrs);
  };
  const auto with = [](auto plain, auto biased) {
    return [=](const Arg& x, const Tensor& weights, const Tensor& bias, const ConvAttrs& a) {
      return bias.defined() ? biased(x, weights, bias, a) : plain(x, weights, a);
    };
  };
  using Plain = Tensor (*)(const Arg&, const Tensor&, const ConvAttrs&);
  using Biased = Tensor (*)(const Arg&, const Tensor&, const Tensor&, const ConvAttrs&);
  if (w.dims == 1) return {run(with(static_cast<Plain>(conv1d), static_cast<Biased>(conv1d)))};
  if (w.dims == 2) return {run(with(static_cast<Plain>(conv2d), static_cast<Biased>(conv2d)))};
  return {run(with(static_cast<Plain>(conv3d), static_cast<Biased>(conv3d)))};
}

// The size of the result is (size - 1) stride + output padding + (k - 1) dilation + 1 - pads. Uneven pads cut the result.
Tensors convolve_transposed(NodeCall& n) {
  Windows w = windows_of(n, window_of(n, n[1]));
  Integers extra = n.integers("output_padding", Integers(w.dims, 0));
  const Integers wanted = n.integers("output_shape");
  n.require(extra.size() == w.dims && (wanted.empty() || wanted.size() == w.dims || wanted.size() == w.dims + 2),
            "there must be one number for each spatial dimension");
  const std::string automatic = n.text("auto_pad", "NOTSET");
  for (std::int64_t size : wanted) n.require(size >= 0 && size < std::int64_t{1} << 40, "a size of the result is not possible");
  for (std::size_t i = 0; i < w.dims; ++i) {
    n.require(extra[i] >= 0 && extra[i] < kMost, "the output padding must not be negative nor huge");
    const std::int64_t full =
        (n[0].size(static_cast<int>(i) + 2) - 1) * w.stride[i] + (w.window[i] - 1) * w.dilation[i] + 1 + extra[i];
    std::int64_t all = w.before[i] + w.after[i];
    if (!wanted.empty())
      all = full - wanted[wanted.size() - w.dims + i];
    else if (automatic.starts_with("SAME"))
      all = full - n[0].size(static_cast<int>(i) + 2) * w.stride[i];
    else
      continue;
    if (all < 0) extra[i] -= all;
    all = std::max<std::int64_t>(all, 0);
    w.before[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    w.after[i] = all - w.before[i];
  }
  ConvTransposeOptions o;
  o.stride = n.list(w.stride);
  o.dilation = n.list(w.dilation);
  o.groups = n.integer("group", 1);
  // Pads of equal size on both sides belong to the op; an uneven rest, and output padding that the op does not take, are cut
  // off.
  Integers common, rest_before, rest_after;
  for (std::size_t i = 0; i < w.dims; ++i) {
    common.push_back(std::min(w.before[i], w.after[i]));
    rest_before.push_back(w.before[i] - common[i]);
    rest_after.push_back(w.after[i] - common[i]);
  }
  o.padding = n.list(common);
  o.output_padding = n.list(extra);
  const auto run = [&](auto plain, auto biased) {
    return n.has(2) ? biased(n.arg(0), n[1], n[2], o) : plain(n.arg(0), n[1], o);
  };
  using Plain = Tensor (*)(const Arg&, const Tensor&, const ConvTransposeOptions&);
  using Biased = Tensor (*)(const Arg&, const Tensor&, const Tensor&, const ConvTransposeOptions&);
  Tensor y;
  if (w.dims == 1) y = run(static_cast<Plain>(conv_transpose1d), static_cast<Biased>(conv_transpose1d));
  if (w.dims == 2) y = run(static_cast<Plain>(conv_transpose2d), static_cast<Biased>(conv_transpose2d));
  if (w.dims == 3) y = run(static_cast<Plain>(conv_transpose3d), static_cast<Biased>(conv_transpose3d));
  for (std::size_t i = 0; i < w.dims; ++i)
    if (rest_before[i] + rest_after[i] > 0)
      y = slice_along(n.arg(y), static_cast<std::int64_t>(i) + 2, rest_before[i],
                      y.size(static_cast<int>(i) + 2) - rest_after[i]);
  return {y};
}

// The pools of Tapedeck pad both sides of a dimension by the same number, by half of the window at most. Other pads are added
// to the operand before.
bool pads_evenly(const Windows& w) {
  for (std::size_t i = 0; i < w.dims; ++i)
    if (w.before[i] != w.after[i] || w.before[i] > w.window[i] / 2) return false;
  return true;
}

Tensor padded(const NodeCall& n, const Tensor& x, const Windows& w, double value) {
  Integers before = {0, 0}, after = {0, 0};
  before.insert(before.end(), w.before.begin(), w.before.end());
  after.insert(after.end(), w.after.begin(), w.after.end());
  return pad(n.arg(x), n.list(before), n.list(after), "constant", value);
}

// 0, step, 2 step, ... along one dimension of a tensor of this rank.
Tensor steps_along(const NodeCall& n, int rank, int dimension, std::int64_t count, std::int64_t step) {
  Integers shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(dimension)] = count;
  const Tensor line = reshape(n.arg(arange(std::int64_t{0}, count, 1, DType::i64, n.site())), n.shape(shape));
  return step == 1 ? line : mul(n.arg(line), step);
}

// The places of the maxima in the whole operand, from their places in their windows, which count row by row.
Tensor flat_places(const NodeCall& n, const Windows& w, const PoolAttrs& attrs) {
  n.require(w.dims != 1, "the indices of the maxima are supported for [n,c,h,w] and [n,c,d,h,w] only");
  const Shape& x = n[0].shape();
  const bool columns_first = n.flag("storage_order");
  const Tensor found = w.dims == 2 ? max_pool2d_index(n.arg(0), attrs) : max_pool3d_index(n.arg(0), attrs);
  Tensor rest = cast(n.arg(found), DType::i64);
  const int rank = rest.rank();
  const std::int64_t planes = x[0] * x[1], plane = planes == 0 ? 0 : n[0].numel() / planes;
  Tensor places = reshape(n.arg(steps_along(n, 1, 0, planes, plane)), n.shape(Integers{x[0], x[1]}));
  for (std::size_t i = 0; i < w.dims; ++i) places = unsqueeze(n.arg(places), -1);
  std::int64_t before = 1, behind = plane, in_window = 1;
  for (const std::int64_t size : w.window) in_window *= size;
  for (std::size_t i = 0; i < w.dims; ++i) {
    const int dimension = static_cast<int>(i) + 2;
    in_window /= w.window[i];
    behind = x[dimension] == 0 ? 0 : behind / x[dimension];
    const Tensor tap = in_window == 1 ? rest : floor_divide(n.arg(rest), in_window);
    if (in_window > 1) rest = sub(n.arg(rest), mul(n.arg(tap), in_window));
    const Tensor start = steps_along(n, rank, dimension, tap.size(dimension), w.stride[i]);
    const Tensor reached = add(n.arg(mul(n.arg(tap), w.dilation[i])), start), at = sub(n.arg(reached), w.before[i]);
    places = add(n.arg(places), mul(n.arg(at), columns_first ? before : behind));
    before *= x[dimension];
  }
  return places;
}

Tensors pool_maximum(NodeCall& n) {
  Windows w = windows_of(n, {});
  pad_to_same_size(n, w);
  Tensor x = n[0];
  const bool bytes = x.dtype() == DType::u8;
  if (bytes) x = cast(n.arg(x), DType::f32);
  const bool even = pads_evenly(w);
  if (!even) {
    n.require(!n.wants(1), "the indices of the maxima are not supported with uneven pads");
    x = padded(n, x, w, -std::numeric_limits<double>::infinity());
    w.before.assign(w.dims, 0);
  }
  const PoolAttrs attrs{n.list(w.window), n.list(w.stride), n.list(w.before), n.list(w.dilation), n.flag("ceil_mode")};
  const Tensor y = w.dims == 1   ? max_pool1d(n.arg(x), attrs)
                   : w.dims == 2 ? max_pool2d(n.arg(x), attrs)
                                 : max_pool3d(n.arg(x), attrs);
  return {bytes ? cast(n.arg(y), DType::u8) : y, n.wants(1) ? flat_places(n, w, attrs) : Tensor()};
}

Tensor average(const NodeCall& n, const Tensor& x, const Windows& w, const AvgPoolAttrs& attrs) {
  if (w.dims == 1) return avg_pool1d(n.arg(x), attrs);
  return w.dims == 2 ? avg_pool2d(n.arg(x), attrs) : avg_pool3d(n.arg(x), attrs);
}

// Uneven pads that do not count: the mean with zeros, divided by the share of elements that are none of the pads.
Tensors pool_average(NodeCall& n) {
  Windows w = windows_of(n, {});
  pad_to_same_size(n, w);
  for (std::int64_t d : w.dilation) n.require(d == 1, "dilations are not supported");
  const bool counts = n.flag("count_include_pad");
  AvgPoolAttrs attrs{n.list(w.window), n.list(w.stride), n.list(w.before), n.flag("ceil_mode"), counts};
  if (pads_evenly(w)) return {average(n, n[0], w, attrs)};
  attrs.padding = {0};
  const Tensor mean = average(n, padded(n, n[0], w, 0), w, attrs);
  if (counts) return {mean};
  return {div(n.arg(mean), average(n, padded(n, ones_like(n.arg(0)), w, 0), w, attrs))};
}

Ints spatial_axes(const NodeCall& n) {
  n.require(n[0].rank() >= 3, "the operand must be [n,c,spatial...]");
  Ints axes;
  for (int i = 2; i < n[0].rank(); ++i) axes.push_back(i);
  return axes;
}

Tensors pool_all_average(NodeCall& n) { return {mean(n.arg(0), spatial_axes(n), true)}; }
Tensors pool_all_maximum(NodeCall& n) { return {max(n.arg(0), spatial_axes(n), true)}; }
Tensors pool_all_norm(NodeCall& n) { return {norm(n.arg(0), static_cast<double>(n.integer("p", 2)), spatial_axes(n), true)}; }

// (sum |x|^p)^(1/p) over each window: the mean times the number of elements.
Tensors pool_norm(NodeCall& n) {
  Windows w = windows_of(n, {});
  pad_to_same_size(n, w);
  n.require(!n.flag("ceil_mode"), "ceil_mode is not supported");
  for (std::int64_t d : w.dilation) n.require(d == 1, "dilations are not supported");
  const auto p = static_cast<double>(n.integer("p", 2));
  double elements = 1;
  for (std::int64_t size : w.window) elements *= static_cast<double>(size);
  const Tensor powers = padded(n, pow(n.arg(abs(n.arg(0))), p), w, 0);
  const Tensor means = average(n, powers, w, {n.list(w.window), n.list(w.stride), {0}, false, true});
  return {pow(n.arg(mul(n.arg(means), elements)), 1 / p)};
}

}  // namespace

std::vector<OnnxOp> window_ops() {
  return {
      {"Conv", 1, "auto_pad dilations group kernel_shape pads strides", convolve},
      {"ConvTranspose", 1, "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
       convolve_transposed},
      {"MaxPool", 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", pool_maximum},
      {"AveragePool", 7, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", pool_average},
      {"LpPool", 2, "auto_pad ceil_mode dilations kernel_shape p pads strides", pool_norm},
      {"GlobalAveragePool", 1, "", pool_all_average},
      {"GlobalMaxPool", 1, "", pool_all_maximum},
      {"GlobalLpPool", 2, "p", pool_all_norm},
  };
}

}  // namespace tapedeck::onnx
