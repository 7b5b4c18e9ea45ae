// Convolutions and pools.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>

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
    all = std::max<std::int64_t>(all, 0);
    w.before[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    if (automatic == "NOTSET" || automatic == "SAME_UPPER") w.before[i] = all / 2;
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

Tensors pool_maximum(NodeCall& n) {
  n.require(!n.wants(1), "the indices of the maxima are not supported as a result");
  Windows w = windows_of(n, {});
  pad_to_same_size(n, w);
  const PoolAttrs attrs{n.list(w.window), n.list(w.stride), w.padding(n), n.list(w.dilation), n.flag("ceil_mode")};
  if (w.dims == 1) return {max_pool1d(n.arg(0), attrs)};
  return {w.dims == 2 ? max_pool2d(n.arg(0), attrs) : max_pool3d(n.arg(0), attrs)};
}

Tensors pool_average(NodeCall& n) {
  Windows w = windows_of(n, {});
  pad_to_same_size(n, w);
  for (std::int64_t d : w.dilation) n.require(d == 1, "dilations are not supported");
  const AvgPoolAttrs attrs{n.list(w.window), n.list(w.stride), w.padding(n), n.flag("ceil_mode"), n.flag("count_include_pad")};
  if (w.dims == 1) return {avg_pool1d(n.arg(0), attrs)};
  return {w.dims == 2 ? avg_pool2d(n.arg(0), attrs) : avg_pool3d(n.arg(0), attrs)};
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
  const AvgPoolAttrs attrs{n.list(w.window), n.list(w.stride), w.padding(n), false, true};
  const Tensor powers = pow(n.arg(abs(n.arg(0))), p);
  const Tensor means = w.dims == 1   ? avg_pool1d(n.arg(powers), attrs)
                       : w.dims == 2 ? avg_pool2d(n.arg(powers), attrs)
                                     : avg_pool3d(n.arg(powers), attrs);
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
