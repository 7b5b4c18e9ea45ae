// Inference and gradients of the activations. A gradient op of a smooth activation has a gradient of its own, which needs the
// second derivative; the functions named ..._curvature compute it.
#include <tapedeck/engine/ops/activation.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/functions.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void infer_float_like_first(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  infer_like_first(f);
}

void require_gelu(const Infer& f) {
  const std::string_view kind = f.attributes<GeluAttrs>().approximate.view();
  if (kind != "none" && kind != "tanh") f.fail(fmt::format("approximate must be \"none\" or \"tanh\", not \"{}\"", kind));
}
void infer_gelu(Infer& f) {
  require_gelu(f);
  infer_float(f);
}
void infer_gelu_grad(Infer& f) {
  require_gelu(f);
  infer_float_like_first(f);
}

void require_softplus(const Infer& f) {
  const double beta = f.attributes<SoftplusAttrs>().beta;
  if (!(beta > 0)) f.fail(fmt::format("beta must be positive, not {}", beta));
}
void infer_softplus(Infer& f) {
  require_softplus(f);
  infer_float(f);
}
void infer_softplus_grad(Infer& f) {
  require_softplus(f);
  infer_float_like_first(f);
}

void infer_elu(Infer& f) {
  const double alpha = f.attributes<EluAttrs>().alpha;
  if (!(alpha >= 0)) f.fail(fmt::format("alpha must not be negative: {}", alpha));
  infer_float(f);
}
void infer_celu(Infer& f) {
  const double alpha = f.attributes<EluAttrs>().alpha;
  if (!(alpha > 0)) f.fail(fmt::format("alpha must be positive, not {}", alpha));
  infer_float(f);
}

void infer_shrink(Infer& f) {
  const double bound = f.attributes<ShrinkAttrs>().bound;
  if (!(bound >= 0)) f.fail(fmt::format("bound must not be negative: {}", bound));
  infer_float(f);
}

void infer_prelu(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  infer_broadcast(f);
  if (f.outputs[0].shape != f.inputs[0].shape)
    f.fail(fmt::format("the weight {} does not broadcast to {}", to_string(f.inputs[1]), to_string(f.inputs[0])));
}

// Second derivative of gelu: bell(x) (2 - x^2), where bell is the density of the normal distribution. For the tanh form, with t
// = tanh(u) and u = k (x + c x^3): (1 - t^2) (u' + x (u'' / 2 - t u'^2)).
Tensor gelu_curvature(const Tensor& x, const GeluAttrs& a) {
  const Tensor z = square(x);
  if (a.approximate.view() == "none") return mul(mul(exp(mul(z, -0.5)), 0.39894228040143267794), sub(2, z));
  constexpr double k = 0.79788456080286535588, c = 0.044715;
  const Tensor t = tanh(mul(x, add(mul(z, k * c), k))), slope = add(mul(z, 3 * k * c), k);
  return mul(sub(1, square(t)), add(slope, mul(x, sub(mul(x, 3 * k * c), mul(t, square(slope))))));
}

// Second derivative of silu: s (1 - s) (2 + x (1 - 2 s)).
Tensor silu_curvature(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return mul(mul(s, sub(1, s)), add(mul(x, sub(1, mul(s, 2))), 2));
}

// Second derivative of mish: 2 t' + x t'' with t = tanh(softplus(x)), t' = (1 - t^2) s, t'' = t' (1 - s - 2 t s).
Tensor mish_curvature(const Tensor& x) {
  const Tensor s = sigmoid(x), t = tanh(softplus(x, 1, std::numeric_limits<double>::infinity()));
  const Tensor slope = mul(sub(1, square(t)), s);
  return mul(slope, add(mul(x, sub(1, mul(s, add(mul(t, 2), 1)))), 2));
}

// The gradient of softplus reads the result if it can. From a threshold of 20 on, log(1 + exp(x)) and x differ by less than
// 2.1e-9, so the result tells on which side of the threshold x lies. For a smaller threshold, a bool mask of x tells the
// side.
void softplus_vjp(Vjp& b) {
  SoftplusAttrs a = b.attributes<SoftplusAttrs>();
  if (a.threshold >= 20) return b.dx(0, softplus_grad(b.y(), b.dy(), a));
  const Tensor linear = greater(mul(b.x(0), a.beta), a.threshold);
  a.threshold = std::numeric_limits<double>::infinity();
  b.dx(0, where(linear, b.dy(), softplus_grad(b.y(), b.dy(), a)));
}

template <class Attrs>
Tensor apply_one(const Op& op, const Arg& x, const Attrs& attrs) {
  return apply(op, {&x.tensor()}, &attrs, x.site());
}

}  // namespace

Tensor gelu(const Arg& x, std::string_view approximate) { return apply_one(ops::gelu, x, GeluAttrs{Name(approximate)}); }
Tensor softplus(const Arg& x, double beta, double threshold) {
  return apply_one(ops::softplus, x, SoftplusAttrs{beta, threshold});
}
Tensor elu(const Arg& x, double alpha) { return apply_one(ops::elu, x, EluAttrs{alpha}); }
Tensor celu(const Arg& x, double alpha) { return apply_one(ops::celu, x, EluAttrs{alpha}); }
Tensor leaky_relu(const Arg& x, double slope) { return apply_one(ops::leaky_relu, x, LeakyReluAttrs{slope}); }
Tensor hardshrink(const Arg& x, double bound) { return apply_one(ops::hardshrink, x, ShrinkAttrs{bound}); }
Tensor softshrink(const Arg& x, double bound) { return apply_one(ops::softshrink, x, ShrinkAttrs{bound}); }
Tensor threshold(const Arg& x, double threshold, double value) {
  return apply_one(ops::threshold, x, ThresholdAttrs{threshold, value});
}
Tensor hardtanh(const Arg& x, double min, double max) { return clamp(x, min, max); }
Tensor relu6(const Arg& x) { return clamp(x, 0, 6); }

Tensor prelu(const Arg& x, const Tensor& weight) {
  require_defined("prelu", x);
  require_defined("prelu", at(weight, x.site()));
  auto [value, w] = promoted("prelu", x, at(weight, x.site()));
  const int rank = value.rank();
  if (w.rank() == 1 && w.size(0) != 1 && rank > 1) {
    Shape per_channel;
    per_channel.rank = rank - 1;
    per_channel[0] = w.size(0);
    for (int d = 1; d < rank - 1; ++d) per_channel[d] = 1;
    w = reshape(at(w, x.site()), per_channel);
  }
  return apply(ops::prelu, {&value, &w}, nullptr, x.site());
}

Tensor glu(const Arg& x, std::int64_t axis) {
  require_defined("glu", x);
  const Tensor& t = x.tensor();
  const std::int64_t d = axis < 0 ? axis + t.rank() : axis;
  if (!valid_axis(d, t.rank()))
    throw TypeError(error_text("glu", fmt::format("axis {} is outside {}", axis, to_string(t.type())), x.site()));
  const int dim = static_cast<int>(d);
  const std::int64_t size = t.size(dim);
  if (size % 2 != 0)
    throw TypeError(error_text("glu", fmt::format("axis {} of {} does not halve", axis, to_string(t.type())), x.site()));
  const Tensor a = slice(x, dim, 0, size / 2), b = slice(x, dim, size / 2, size);
  return mul(at(a, x.site()), sigmoid(at(b, x.site())));
}

Tensor swiglu(const Arg& gate, const Tensor& x) { return mul(at(silu(gate), gate.site()), x); }

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/activation.h>
