// Inference and gradients of products, variances, norms and counts over axes. Some plain formulas would divide by zero or
// subtract infinities: std of equal elements, prod with zeros, logsumexp of -inf. Their gradients use a safe form.
#include <tapedeck/engine/ops/statistics.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/scan.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

void infer_statistic(Infer& f, DType dtype, const Ints& axes, bool keepdims) {
  f.outputs.assign(1, Type{dtype, infer_reduced_shape(f, axes, keepdims)});
}

void infer_truth(Infer& f) {
  infer_statistic(f, DType::boolean, f.attributes<ReduceAttrs>().axes, f.attributes<ReduceAttrs>().keepdims);
}

void infer_variance(Infer& f) {
  const auto& a = f.attributes<VarAttrs>();
  infer_require_float(f, f.inputs[0]);
  if (!(a.correction >= 0)) f.fail("correction must be a number of at least 0");
  infer_statistic(f, f.inputs[0].dtype, a.axes, a.keepdims);
}

void infer_norm(Infer& f) {
  const auto& a = f.attributes<NormAttrs>();
  infer_require_float(f, f.inputs[0]);
  if (std::isnan(a.p)) f.fail("p must be a number");
  infer_statistic(f, f.inputs[0].dtype, a.axes, a.keepdims);
  if (std::isinf(a.p) && f.inputs[0].numel() == 0 && f.outputs[0].numel() > 0)
    f.fail(fmt::format("no extreme of an empty range of {}", to_string(f.inputs[0])));
}

void infer_argmin(Infer& f) {
  const Type& x = f.inputs[0];
  const std::int64_t axis = f.attributes<AxisAttrs>().axis;
  infer_require_axis(f, axis);
  if (x.shape[static_cast<int>(axis)] == 0) f.fail(fmt::format("no smallest element along an empty axis of {}", to_string(x)));
  f.outputs.assign(1, Type{DType::i64, infer_reduced_shape(f, {axis}, false)});
}

// ---- gradients ----

// Reshapes a reduced tensor so that it broadcasts to operand 0: the reduced dimensions get size 1.
Tensor spread(const Tensor& t, const Shape& shape, const Ints& axes) {
  Shape kept = shape;
  for (std::int64_t axis : axes) kept.sizes[axis] = 1;
  return reshape(t, kept);
}
Tensor spread(const Vjp& b, const Tensor& t) { return spread(t, b.x(0).shape(), b.attributes<VarAttrs>().axes); }

// dy / y, and 0 where y is 0.
Tensor unless_zero(const Tensor& y, const Tensor& dy) {
  const Tensor zero = equal(y, 0);
  return where(zero, 0, div(dy, where(zero, 1, y)));
}

Tensor vjp_centred(const Vjp& b) { return sub(b.x(0), mean(b.x(0), b.attributes<VarAttrs>().axes, true)); }

double divisor(const Vjp& b) {
  const double count = static_cast<double>(b.x(0).numel()) / static_cast<double>(std::max<std::int64_t>(b.y().numel(), 1));
  return std::max(count - b.attributes<VarAttrs>().correction, 0.0);
}

// The gradient of prod: for each element the product of all others, computed as the product of the elements before it times
// the product of the elements after it. So it is right for zeros too.
void vjp_prod(Vjp& b) {
  const Ints& axes = b.attributes<ReduceAttrs>().axes;
  const Shape& shape = b.x(0).shape();
  Ints order, inverse;
  Shape moved, lines;
  for (bool reduced : {false, true})
    for (int d = 0; d < shape.rank; ++d)
      if ((std::find(axes.begin(), axes.end(), d) != axes.end()) == reduced) order.push_back(d);
  inverse = order;
  std::int64_t length = 1;
  for (int i = 0; i < order.size; ++i) {
    const int d = static_cast<int>(order[i]);
    inverse.items[d] = i;
    moved.sizes[moved.rank++] = shape[d];
    if (i < shape.rank - axes.size)
      lines.sizes[lines.rank++] = shape[d];
    else
      length *= shape[d];
  }
  lines.sizes[lines.rank++] = length;
  const Tensor x = reshape(transpose(b.x(0), order), lines);
  const Tensor others = mul(cumprod(x, -1, {.exclusive = true}), cumprod(x, -1, {.exclusive = true, .reverse = true}));
  b.dx(0, mul(transpose(reshape(others, moved), inverse), spread(b.dy(), shape, axes)));
}

// The gradient of logsumexp. The lowest finite number replaces -inf, because -inf minus -inf is NaN.
void vjp_logsumexp(Vjp& b) {
  const Ints& axes = b.attributes<ReduceAttrs>().axes;
  const Shape& shape = b.x(0).shape();
  const double lowest = b.y().dtype() == DType::f16 ? -65504.0 : -3e38;
  b.dx(0, mul(exp(sub(b.x(0), spread(maximum(b.y(), lowest), shape, axes))), spread(b.dy(), shape, axes)));
}

// The gradient of the norms for p = inf and p = -inf. Equal extremes share it evenly.
Tensor extreme_share(const Tensor& x, const Tensor& y, const Ints& axes) {
  const Tensor hit = cast(equal(abs(x), y), x.dtype());
  return mul(sign(x), div(hit, sum(hit, axes, true)));
}

// sign(x) |x|^(p-1), and 0 where x is 0.
Tensor signed_power(const Tensor& x, double p) {
  const Tensor size = abs(x), zero = equal(size, 0);
  return mul(sign(x), where(zero, 0, pow(where(zero, 1, size), p - 1)));
}

void vjp_norm(Vjp& b) {
  const auto& a = b.attributes<NormAttrs>();
  const Tensor& x = b.x(0);
  auto wide = [&](const Tensor& t) { return spread(t, x.shape(), a.axes); };
  if (a.p == 0) return b.dx(0, zeros(x.shape(), x.dtype()));
  if (a.p == 1) return b.dx(0, mul(sign(x), wide(b.dy())));
  if (a.p == 2) return b.dx(0, mul(x, wide(unless_zero(b.y(), b.dy()))));
  if (std::isinf(a.p)) return b.dx(0, mul(extreme_share(x, wide(b.y()), a.axes), wide(b.dy())));
  const Tensor zero = equal(b.y(), 0);
  const Tensor scale = where(zero, 0, div(b.dy(), pow(where(zero, 1, b.y()), a.p - 1)));
  b.dx(0, mul(signed_power(x, a.p), wide(scale)));
}

template <class Attrs>
Tensor reduce(const Op& op, const Arg& x, Attrs attrs, const Ints& axes, bool keepdims) {
  attrs.axes = normal_axes(op.name, x, axes);
  attrs.keepdims = keepdims;
  return apply(op, {&x.tensor()}, &attrs, x.site());
}

}  // namespace

Tensor prod(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::prod, x, ReduceAttrs{}, axes, keepdims); }
Tensor any(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::any, x, ReduceAttrs{}, axes, keepdims); }
Tensor all(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::all, x, ReduceAttrs{}, axes, keepdims); }
Tensor count_nonzero(const Arg& x, const Ints& axes, bool keepdims) {
  return reduce(ops::count_nonzero, x, ReduceAttrs{}, axes, keepdims);
}
Tensor logsumexp(const Arg& x, const Ints& axes, bool keepdims) {
  return reduce(ops::logsumexp, x, ReduceAttrs{}, axes, keepdims);
}

Tensor var(const Arg& x, const Ints& axes, bool keepdims, double correction) {
  VarAttrs attrs;
  attrs.correction = correction;
  return reduce(ops::var, x, attrs, axes, keepdims);
}
Tensor std(const Arg& x, const Ints& axes, bool keepdims, double correction) {
  VarAttrs attrs;
  attrs.correction = correction;
  return reduce(ops::std, x, attrs, axes, keepdims);
}
Tensor norm(const Arg& x, double p, const Ints& axes, bool keepdims) {
  NormAttrs attrs;
  attrs.p = p;
  return reduce(ops::norm, x, attrs, axes, keepdims);
}

Tensor argmin(const Arg& x, std::int64_t axis) {
  const AlongAxis along("argmin", x, axis);
  const AxisAttrs attrs{along.axis()};
  return along.result(apply(ops::argmin, {&along.operand()}, &attrs, x.site()));
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/statistics.h>
