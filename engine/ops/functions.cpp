// Inference and gradients of mathematical functions, and the functions for authors that have options. Gradients avoid terms
// that lose precision or are not finite, and keep bool masks in place of operands where they can.
#include <tapedeck/engine/ops/functions.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/clamp_grad.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck {
namespace {

constexpr std::int64_t kMaxPolygamma = 20;

void require_number(const Infer& f) {
  for (const Type& t : f.inputs)
    if (t.dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(t)));
}

void infer_number(Infer& f) {
  require_number(f);
  infer_same(f);
}

void infer_broadcast_number(Infer& f) {
  require_number(f);
  infer_broadcast(f);
}

void infer_test(Infer& f) {
  require_number(f);
  f.outputs.assign(1, Type{DType::boolean, f.inputs[0].shape});
}

void infer_isclose(Infer& f) {
  require_number(f);
  const auto& a = f.attributes<IsCloseAttrs>();
  if (!(a.rtol >= 0 && a.atol >= 0)) f.fail(fmt::format("tolerances must not be negative: rtol {}, atol {}", a.rtol, a.atol));
  f.outputs.assign(1, Type{DType::boolean, infer_broadcast_shape(f)});
}

bool whole(double bound) { return std::isinf(bound) || bound == std::trunc(bound); }

void infer_clamp(Infer& f) {
  require_number(f);
  const auto& a = f.attributes<ClampAttrs>();
  if (std::isnan(a.min) || std::isnan(a.max)) f.fail("a bound is NaN");
  if (!is_floating(f.inputs[0].dtype) && !(whole(a.min) && whole(a.max)))
    f.fail(fmt::format("bounds of {} must be whole numbers, not {} and {}", to_string(f.inputs[0]), a.min, a.max));
  infer_same(f);
}

void infer_polygamma(Infer& f) {
  const std::int64_t n = f.attributes<PolygammaAttrs>().n;
  if (n < 1 || n > kMaxPolygamma) f.fail(fmt::format("n must be 1 to {}, not {}", kMaxPolygamma, n));
  infer_float(f);
}

template <int kFlops>
Cost cost_of_function(std::span<const Type> in, std::span<const Type> out, const void*) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = kFlops * static_cast<double>(out[0].numel());
  return cost;
}

// 1 - x^2, computed as (1 - x)(1 + x). This stays exact near x = 1, where x^2 would be rounded.
Tensor one_minus_square(const Tensor& x) { return mul(sub(1, x), add(x, 1)); }

void infer_clamp_grad(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  infer_like_first(f);
  const auto& a = f.attributes<ClampAttrs>();
  if (std::isnan(a.min) || std::isnan(a.max)) f.fail("a bound is NaN");
}

// The bound as clamp writes it into a result. Half types are computed in f32 and then rounded.
double bound_in_results(double bound, DType dtype) {
  if (dtype == DType::f16) return kernels::to_f32(kernels::to_f16(static_cast<float>(bound)));
  if (dtype == DType::bf16) return kernels::to_f32(kernels::to_bf16(static_cast<float>(bound)));
  return bound;
}

// The gradient of clamp: none at a bound, as relu has none at 0.
void clamp_vjp(Vjp& b) {
  const auto& a = b.attributes<ClampAttrs>();
  const bool low = !std::isinf(a.min) || a.min > 0, high = !std::isinf(a.max) || a.max < 0;
  if (!low && !high) return b.dx(0, b.dy());
  const DType dtype = b.y().dtype();
  b.dx(0, clamp_grad(b.y(), b.dy(), {bound_in_results(a.min, dtype), bound_in_results(a.max, dtype)}));
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

Tensor polygamma(std::int64_t n, const Arg& x) {
  if (n == 0) return digamma(x);
  const PolygammaAttrs attrs{n};
  return apply(ops::polygamma, {&x.tensor()}, &attrs, x.site());
}

Tensor clamp(const Arg& x, double min, double max) {
  const ClampAttrs attrs{min, max};
  return apply(ops::clamp, {&x.tensor()}, &attrs, x.site());
}

Tensor isclose(const Arg& a, const Arg& b, double rtol, double atol, bool equal_nan) {
  IsCloseAttrs attrs;
  attrs.rtol = rtol;
  attrs.atol = atol;
  attrs.equal_nan = equal_nan;
  auto [x, y] = promoted("isclose", a, b);
  return apply(ops::isclose, {&x, &y}, &attrs, a.site());
}

Tensor nan_to_num(const Arg& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  require_defined("nan_to_num", x);
  const DType dtype = x.tensor().dtype();
  if (!is_floating(dtype)) return x.tensor();
  const NanToNumAttrs attrs{nan, posinf.value_or(largest_finite(dtype)), neginf.value_or(-largest_finite(dtype))};
  return apply(ops::nan_to_num, {&x.tensor()}, &attrs, x.site());
}

Tensor lerp(const Arg& a, const Arg& b, const Arg& weight) {
  auto [start, end] = promoted("lerp", a, b);
  auto [x, w] = promoted("lerp", at(start, a.site()), weight);
  const Tensor y = cast(at(end, a.site()), x.dtype());
  return apply(ops::lerp, {&x, &y, &w}, nullptr, a.site());
}

Tensor addcmul(const Arg& x, const Arg& a, const Arg& b, double value) {
  const Tensor product = mul(a, b);
  return add(x, value == 1 ? product : mul(at(product, x.site()), value));
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/clamp_grad.h>
#include <tapedeck/engine/ops/functions.h>
