// Inference and gradients of scans. The gradient of a running sum is a running sum in the other direction; the other
// gradients are linear recurrences in the other direction:
//
//       y = cumsum(x)     dx = cumsum(dy) {reverse=true}
#include <tapedeck/engine/ops/scan.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/index.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void infer_scan(Infer& f) {
  if (f.inputs[0].dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(f.inputs[0])));
  infer_require_axis(f, f.attributes<ScanAttrs>().axis);
  infer_same(f);
}

void infer_linear_scan(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  infer_require_axis(f, f.attributes<LinearScanAttrs>().axis);
  infer_like_first(f);
}

void infer_running_extreme(Infer& f) {
  if (f.inputs[0].dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(f.inputs[0])));
  infer_require_axis(f, f.attributes<AxisAttrs>().axis);
  f.outputs.assign({f.inputs[0], Type{DType::i64, f.inputs[0].shape}});
}

// Replaces every element by the next one along the axis (`after`) or by the one before. If there is none, the result is 0.
Tensor neighbour(const Tensor& x, std::int64_t axis, bool after) {
  const std::int64_t n = x.size(static_cast<int>(axis));
  if (n == 0) return x;
  Ints front, behind;
  for (int d = 0; d < x.rank(); ++d) {
    front.push_back(d == axis && !after);
    behind.push_back(d == axis && after);
  }
  return pad(slice(x, static_cast<int>(axis), after ? 1 : 0, after ? n : n - 1), front, behind);
}

// The gradient of cumprod: dx = e q. e is the product of the elements before x[i]. q[i] sums dy over result i and all later
// results, each times the product of the elements between; it is a linear recurrence in the other direction. Nothing is
// divided, so zeros in x do no harm.
void vjp_cumprod(Vjp& b) {
  const auto& a = b.attributes<ScanAttrs>();
  const Tensor& x = b.x(0);
  const bool after = !a.reverse;
  const Tensor before = cumprod(x, a.axis, {.exclusive = true, .reverse = a.reverse});
  const Tensor dy = a.exclusive ? neighbour(b.dy(), a.axis, after) : b.dy();
  b.dx(0, mul(before, linear_scan(neighbour(x, a.axis, after), dy, a.axis, !a.reverse)));
}

// The gradient of logcumsumexp: dx[i] = exp(x[i] - y[i]) s[i] with s[i] = dy[i] + exp(y[i] - y[i+1]) s[i+1]. y never falls,
// so no exponential is above 1. The lowest finite number replaces -inf, because -inf minus -inf is NaN.
void vjp_logcumsumexp(Vjp& b) {
  const auto& a = b.attributes<LinearScanAttrs>();
  const Tensor y = maximum(b.y(), b.y().dtype() == DType::f16 ? -65504.0 : -3e38);
  const std::int64_t n = y.size(static_cast<int>(a.axis));
  if (n == 0) return b.dx(0, b.dy());
  const int axis = static_cast<int>(a.axis);
  const Tensor first = slice(y, axis, 0, n - 1), second = slice(y, axis, 1, n);
  Ints front, behind;
  for (int d = 0; d < y.rank(); ++d) {
    front.push_back(d == axis && a.reverse);
    behind.push_back(d == axis && !a.reverse);
  }
  const Tensor step = pad(exp(a.reverse ? sub(second, first) : sub(first, second)), front, behind);
  b.dx(0, mul(exp(sub(b.x(0), y)), linear_scan(step, b.dy(), a.axis, !a.reverse)));
}

void vjp_running_extreme(Vjp& b) {
  const std::int64_t axis = b.attributes<AxisAttrs>().axis;
  b.dx(0, scatter_add(zeros(b.x(0).shape(), b.dy().dtype()), b.y(1), b.dy(), axis));
}

Tensor scan(const Op& op, const Arg& x, std::int64_t axis, ScanOptions options) {
  const AlongAxis along(op.name, x, axis);
  const ScanAttrs attrs{along.axis(), options.exclusive, options.reverse};
  const Tensor& t = along.operand();
  if (t.dtype() != DType::boolean) return along.result(apply(op, {&t}, &attrs, x.site()));
  const Tensor counted = cast(Arg(t, x.site().file, x.site().line), DType::i64);
  return along.result(apply(op, {&counted}, &attrs, x.site()));
}

std::pair<Tensor, Tensor> running_extreme(const Op& op, const Arg& x, std::int64_t axis) {
  const AlongAxis along(op.name, x, axis);
  const AxisAttrs attrs{along.axis()};
  return along.results(apply_all(op, {&along.operand(), 1}, &attrs, x.site()));
}

}  // namespace

Tensor cumsum(const Arg& x, std::int64_t axis, ScanOptions options) { return scan(ops::cumsum, x, axis, options); }
Tensor cumprod(const Arg& x, std::int64_t axis, ScanOptions options) { return scan(ops::cumprod, x, axis, options); }

Tensor logcumsumexp(const Arg& x, std::int64_t axis, bool reverse) {
  const AlongAxis along("logcumsumexp", x, axis);
  const LinearScanAttrs attrs{along.axis(), reverse};
  return along.result(apply(ops::logcumsumexp, {&along.operand()}, &attrs, x.site()));
}

Tensor linear_scan(const Arg& a, const Arg& b, std::int64_t axis, bool reverse) {
  const LinearScanAttrs attrs{normal_axis("linear_scan", a, axis), reverse};
  return apply(ops::linear_scan, {&a.tensor(), &b.tensor()}, &attrs, a.site());
}

std::pair<Tensor, Tensor> cummax(const Arg& x, std::int64_t axis) { return running_extreme(ops::cummax, x, axis); }
std::pair<Tensor, Tensor> cummin(const Arg& x, std::int64_t axis) { return running_extreme(ops::cummin, x, axis); }

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/scan.h>
