// GridSample: an operand is read at places that are values between its elements. Each place is a weighted sum of the elements
// around it, so the op is one gather for each of them, and gradients flow to the operand and to the places.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>
#include <string>

namespace tapedeck::onnx {

namespace {

struct Sampling {
  std::string mode, padding;  // linear, nearest, cubic; zeros, border, reflection
  bool align = false;
};

// A coordinate in [-1, 1] as a place among `size` elements.
Tensor sample_place(const NodeCall& n, const Sampling& s, const Tensor& at, std::int64_t size) {
  const auto count = static_cast<double>(size);
  if (s.align) return mul(n.arg(add(n.arg(at), 1.0)), (count - 1) / 2);
  return mul(n.arg(sub(n.arg(mul(n.arg(add(n.arg(at), 1.0)), count)), 1.0)), 0.5);
}

// Mirrors a place at both ends until it is inside.
Tensor reflected(const NodeCall& n, const Sampling& s, const Tensor& place, std::int64_t size) {
  const double low = s.align ? 0 : -0.5, high = s.align ? static_cast<double>(size) - 1 : static_cast<double>(size) - 0.5;
  const double range = high - low;
  if (range <= 0) return mul(n.arg(place), 0.0);
  const Tensor far = abs(sub(n.arg(place), low));
  const Tensor times = floor(div(n.arg(far), range)), rest = sub(n.arg(far), mul(n.arg(times), range));
  const Tensor odd = not_equal(n.arg(remainder(n.arg(times), 2.0)), 0.0);
  return add(n.arg(where(n.arg(odd), sub(range, rest), rest)), low);
}

// An element near a place along one axis: its number, its weight, and whether it is one of the operand.
struct Tap {
  Tensor at, weight, inside;  // the weight is undefined where it is 1
};

Tap tap_of(const NodeCall& n, const Sampling& s, Tensor at, const Tensor& weight, std::int64_t size) {
  if (s.padding == "reflection") at = reflected(n, s, at, size);
  const auto last = static_cast<double>(size) - 1;
  const Tensor inside = logical_and(n.arg(greater_equal(n.arg(at), 0.0)), less_equal(n.arg(at), last));
  return {cast(n.arg(round(n.arg(clamp(n.arg(at), 0.0, last)))), DType::i64), weight, s.padding == "zeros" ? inside : Tensor()};
}

std::vector<Tap> sample_taps(const NodeCall& n, const Sampling& s, Tensor place, std::int64_t size) {
  const auto last = static_cast<double>(size) - 1;
  if (s.mode != "cubic") {
    if (s.padding == "border") place = clamp(n.arg(place), 0.0, last);
    if (s.padding == "reflection") place = clamp(n.arg(reflected(n, s, place, size)), 0.0, last);
  }
  if (s.mode == "nearest") return {tap_of(n, s, round(n.arg(place)), {}, size)};
  const Tensor low = stop_gradient(n.arg(floor(n.arg(place)))), part = sub(n.arg(place), low);
  if (s.mode == "linear") return {tap_of(n, s, low, sub(1.0, part), size), tap_of(n, s, add(n.arg(low), 1.0), part, size)};
  constexpr double kA = -0.75;
  const auto near = [&](const Tensor& d) {
    return add(n.arg(mul(n.arg(mul(n.arg(sub(n.arg(mul(n.arg(d), kA + 2)), kA + 3)), d)), d)), 1.0);
  };
  const auto far = [&](const Tensor& d) {
    const Tensor inner = mul(n.arg(add(n.arg(mul(n.arg(sub(n.arg(d), 5.0)), d)), 8.0)), d);
    return mul(n.arg(sub(n.arg(inner), 4.0)), kA);
  };
  const Tensor rest = sub(1.0, part);
  return {tap_of(n, s, sub(n.arg(low), 1.0), far(add(n.arg(part), 1.0)), size), tap_of(n, s, low, near(part), size),
          tap_of(n, s, add(n.arg(low), 1.0), near(rest), size),
          tap_of(n, s, add(n.arg(low), 2.0), far(add(n.arg(rest), 1.0)), size)};
}

// The product of the taps of all axes: one gather for each combination.
Tensor sampled(const NodeCall& n, const Tensor& x, const std::vector<std::vector<Tap>>& axes) {
  const std::int64_t batch = x.size(0), channels = x.size(1);
  std::int64_t elements = 1, combinations = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    elements *= x.size(static_cast<int>(i) + 2);
    combinations *= static_cast<std::int64_t>(axes[i].size());
  }
  const Tensor rows = reshape(n.arg(x), {batch, channels, elements});
  Tensor sum;
  for (std::int64_t c = 0; c < combinations; ++c) {
    Tensor at, weight, inside;
    std::int64_t rest = c;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const Tap& tap = axes[i][static_cast<std::size_t>(rest) % axes[i].size()];
      rest /= static_cast<std::int64_t>(axes[i].size());
      at = at.defined() ? add(n.arg(mul(n.arg(at), x.size(static_cast<int>(i) + 2))), tap.at) : tap.at;
      if (tap.weight.defined()) weight = weight.defined() ? mul(n.arg(weight), tap.weight) : tap.weight;
      if (tap.inside.defined()) inside = inside.defined() ? logical_and(n.arg(inside), tap.inside) : tap.inside;
    }
    const auto line = [&](const Tensor& t) {
      return reshape(n.arg(t), {batch, 1, t.numel() / std::max<std::int64_t>(batch, 1)});
    };
    const Tensor index = broadcast_to(n.arg(line(at)), {batch, channels, at.numel() / std::max<std::int64_t>(batch, 1)});
    Tensor term = gather(n.arg(rows), index, 2);
    if (weight.defined()) term = mul(n.arg(term), line(weight));
    if (inside.defined()) term = where(n.arg(line(inside)), term, 0);
    sum = sum.defined() ? add(n.arg(sum), term) : term;
  }
  return sum;
}

Tensors sample_grid(NodeCall& n) {
  Sampling s;
  s.mode = n.text("mode", n.opset() < 20 ? "bilinear" : "linear");
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode == "bicubic") s.mode = "cubic";
  s.padding = n.text("padding_mode", "zeros");
  s.align = n.flag("align_corners");
  n.require(s.mode == "linear" || s.mode == "nearest" || s.mode == "cubic", "the mode '" + s.mode + "' is not supported");
  n.require(s.padding == "zeros" || s.padding == "border" || s.padding == "reflection", "the padding is not supported");
  const int dims = n[0].rank() - 2;
  n.require((dims == 2 || dims == 3) && n[1].rank() == dims + 2 && n[1].size(-1) == dims && n[0].size(0) == n[1].size(0),
            "the grid must be [n,places...,2] for [n,c,h,w], or [n,places...,3] for [n,c,d,h,w]");
  std::vector<std::vector<Tap>> axes;
  for (int i = 0; i < dims; ++i) {
    // The grid names the last axis first.
    const Tensor at = select(n.arg(1), dims + 1, dims - 1 - i);
    axes.push_back(sample_taps(n, s, sample_place(n, s, at, n[0].size(i + 2)), n[0].size(i + 2)));
  }
  Integers sizes = {n[0].size(0), n[0].size(1)};
  sizes.insert(sizes.end(), n[1].shape().begin() + 1, n[1].shape().end() - 1);
  return {reshape(n.arg(sampled(n, n[0], axes)), n.shape(sizes))};
}

}  // namespace

std::vector<OnnxOp> sample_ops() { return {{"GridSample", 16, "align_corners mode padding_mode", sample_grid}}; }

}  // namespace tapedeck::onnx
