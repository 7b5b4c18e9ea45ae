// Inference and gradients of the normalizations, and the functions for authors.
//
// The gradient ops have gradients too. That formula is written once, in grad_vjp(), for x in a common form in which
// statistics and weights broadcast. Each op reshapes its operands to that form and its results back:
//
//       batch_norm x [n,c,h,w] -> [n, c, h w], statistics [1,c,1]      layer_norm x [..., d] -> [rows, d], statistics [rows,1]
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/norm.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/cpu/normalization/norm_plan.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck {
namespace {

using kernels::cpu::BatchPlan;
using kernels::cpu::RowPlan;

// ---- inference ----

const Type& operand(const Infer& f, std::size_t i) { return f.inputs[i]; }

void require_type(const Infer& f, std::size_t i, const char* what, const Type& wanted) {
  if (i < f.inputs.size() && f.inputs[i] != wanted)
    f.fail(fmt::format("the {} must be {}, not {}", what, to_string(wanted), to_string(f.inputs[i])));
}

// Checks that eps is not negative, that x is floating, and that x has at least `rank` dimensions.
const Type& require_x(const Infer& f, double eps, int rank) {
  const Type& x = f.inputs[0];
  infer_require_float(f, x);
  if (x.shape.rank < rank) f.fail(fmt::format("needs at least {} dimensions, got {}", rank, to_string(x)));
  if (!(eps >= 0)) f.fail("eps must not be negative");
  return x;
}

void require_affine(const Infer& f, std::size_t first, const Type& wanted) {
  require_type(f, first, "weight", wanted);
  require_type(f, first + 1, "bias", wanted);
}

Type checked_type(const Infer& f, const Type& t) {
  if (checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) < 0) f.fail("too large");
  return t;
}

Type channels_of(const Infer& f, const Type& x) { return checked_type(f, Type{x.dtype, {x.shape[1]}}); }

void infer_batch_norm(Infer& f) {
  const Type x = require_x(f, f.attributes<BatchNormAttrs>().eps, 2), channels = channels_of(f, x);
  require_affine(f, 1, channels);
  f.outputs = {x, channels, channels};
}

void infer_batch_norm_inference(Infer& f) {
  const Type x = require_x(f, f.attributes<BatchNormAttrs>().eps, 2), channels = channels_of(f, x);
  require_type(f, 1, "mean", channels);
  require_type(f, 2, "variance", channels);
  require_affine(f, 3, channels);
  f.outputs.assign(1, x);
}

// Checks the operands of a gradient op: x, dy, the mean, the second statistic, the gradients of both statistics, and the
// weight.
void infer_grad(Infer& f, const Type& x, const Type& statistic, const Type& weight, const char* second) {
  require_type(f, 1, "gradient", x);
  require_type(f, 2, "mean", statistic);
  require_type(f, 3, second, statistic);
  require_type(f, 4, "mean's gradient", statistic);
  require_type(f, 5, "statistic's gradient", statistic);
  require_type(f, 6, "weight", weight);
  if (f.inputs.size() > 6)
    f.outputs = {x, weight, weight};
  else
    f.outputs.assign(1, x);
}

void infer_batch_norm_grad(Infer& f) {
  const Type x = require_x(f, f.attributes<BatchNormAttrs>().eps, 2), channels = channels_of(f, x);
  infer_grad(f, x, channels, channels, "variance");
}

// The type of one row, and the type of a statistic with one number for each row.
struct Rows {
  Type row, statistic;
};

Rows rows_of(const Infer& f) {
  const auto& a = f.attributes<LayerNormAttrs>();
  const Type& x = require_x(f, a.eps, 1);
  if (a.dims < 1 || a.dims > x.shape.rank)
    f.fail(fmt::format("cannot normalise over {} dimensions of {}", a.dims, to_string(x)));
  const int kept = x.shape.rank - static_cast<int>(a.dims);
  Rows r{{x.dtype, {}}, {x.dtype, {}}};
  for (int i = 0; i < x.shape.rank; ++i) {
    Shape& shape = i < kept ? r.statistic.shape : r.row.shape;
    shape.sizes[shape.rank++] = x.shape[i];
  }
  checked_type(f, r.row);
  checked_type(f, r.statistic);
  return r;
}

void infer_layer_norm(Infer& f) {
  const Rows r = rows_of(f);
  require_affine(f, 1, r.row);
  f.outputs = {operand(f, 0), r.statistic, r.statistic};
}

void infer_layer_norm_grad(Infer& f) {
  const Rows r = rows_of(f);
  infer_grad(f, operand(f, 0), r.statistic, r.row, "rstd");
}

void infer_rms_norm(Infer& f) {
  const Rows r = rows_of(f);
  require_type(f, 1, "weight", r.row);
  f.outputs = {operand(f, 0), r.statistic};
}

void infer_rms_norm_grad(Infer& f) {
  const Rows r = rows_of(f);
  const Type x = operand(f, 0);
  require_type(f, 1, "gradient", x);
  require_type(f, 2, "rstd", r.statistic);
  require_type(f, 3, "statistic's gradient", r.statistic);
  require_type(f, 4, "weight", r.row);
  f.outputs.assign(1, x);
  if (f.inputs.size() > 4) f.outputs.push_back(r.row);
}

Type group_statistic(const Infer& f) {
  const auto& a = f.attributes<GroupNormAttrs>();
  const Type& x = require_x(f, a.eps, 2);
  if (a.groups < 1 || x.shape[1] % a.groups != 0)
    f.fail(fmt::format("the channels of {} do not fall into {} groups", to_string(x), a.groups));
  return checked_type(f, Type{x.dtype, {x.shape[0], a.groups}});
}

void infer_group_norm(Infer& f) {
  const Type statistic = group_statistic(f), x = operand(f, 0);
  require_affine(f, 1, channels_of(f, x));
  f.outputs = {x, statistic, statistic};
}

void infer_group_norm_grad(Infer& f) {
  const Type statistic = group_statistic(f), x = operand(f, 0);
  infer_grad(f, x, statistic, channels_of(f, x), "rstd");
}

// ---- cost and workspace ----

Cost cost_norm(std::span<const Type> in, std::span<const Type> out, const void*) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = 8.0 * static_cast<double>(in[0].numel());
  return cost;
}

std::int64_t workspace_batch_norm(std::span<const Type> in, std::span<const Type>, const void*) {
  const Shape& x = in[0].shape;
  std::int64_t plane = 1;
  for (int d = 2; d < x.rank; ++d) plane *= x[d];
  return BatchPlan(x[0], x[1], plane).workspace();
}

std::int64_t workspace_layer_norm_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  if (out.size() == 1) return 0;
  const int kept = in[0].shape.rank - static_cast<int>(static_cast<const LayerNormAttrs*>(attrs)->dims);
  std::int64_t rows = 1;
  for (int d = 0; d < kept; ++d) rows *= in[0].shape[d];
  return RowPlan(rows, out[1].numel()).workspace(static_cast<std::int64_t>(dtype_size(in[0].dtype)));
}

std::int64_t workspace_group_norm_grad(std::span<const Type> in, std::span<const Type>, const void*) {
  return 2 * 8 * in[0].shape[0] * in[0].shape[1];
}

// ---- gradients ----

std::vector<Tensor> apply_grad(const Op& op, std::vector<Tensor> operands, const Tensor& weight, const void* attrs, Site site) {
  if (weight.defined()) operands.push_back(weight);
  return apply_all(op, operands, attrs, site);
}

void pass_on(Vjp& b, const std::vector<Tensor>& grads) {
  for (int i = 0; i < b.n_inputs(); ++i) b.dx(i, grads[i]);
}

// The gradient of batch_norm, layer_norm and group_norm: each has the result y and two statistics.
void vjp_centred(Vjp& b, const Op& grad) {
  pass_on(b, apply_grad(grad, {b.x(0), b.dy(0), b.y(1), b.y(2), b.dy(1), b.dy(2)}, b.n_inputs() > 1 ? b.x(1) : Tensor(),
                        b.attrs, b.site()));
}

void vjp_batch_norm(Vjp& b) { vjp_centred(b, ops::batch_norm_grad); }
void vjp_layer_norm(Vjp& b) { vjp_centred(b, ops::layer_norm_grad); }
void vjp_group_norm(Vjp& b) { vjp_centred(b, ops::group_norm_grad); }

void vjp_rms_norm(Vjp& b) {
  pass_on(b, apply_grad(ops::rms_norm_grad, {b.x(0), b.dy(0), b.y(1), b.dy(1)}, b.n_inputs() > 1 ? b.x(1) : Tensor(), b.attrs,
                        b.site()));
}

// The gradient of a gradient op. The gradient op computes, with xh = (x - mean) rstd, g = dy w, and averages over the `axes`
// that share a statistic (n elements),
//     dx = rstd (g - avg(g) - xh avg(g xh)) + dmean / n - drstd rstd^2 xh / n,   dw = sum(dy xh),   db = sum(dy)
// For rms_norm there is no mean and no avg(g). Statistics have size 1 along `axes`, and weights broadcast.
struct GradVjp {
  Tensor x, dy, mean, rstd, drstd, weight;  // operands; mean and weight may be undefined
  Tensor ddx, ddweight, ddbias;             // gradients of the results; the last two may be undefined
  Ints axes;

  Tensor total(const Tensor& t) const { return sum(t, axes, true); }
  double count() const {
    double n = 1;
    for (std::int64_t axis : axes) n *= static_cast<double>(x.size(static_cast<int>(axis)));
    return n > 0 ? n : 1;
  }
};

struct GradPieces {
  Tensor x, dy, mean, rstd, dmean, drstd, weight;
};

GradPieces grad_vjp(const GradVjp& v) {
  const double inverse = 1 / v.count();
  const bool centred = v.mean.defined();
  const Tensor from_mean = centred ? sub(v.x, v.mean) : v.x;
  const Tensor xh = mul(from_mean, v.rstd), square_rstd = square(v.rstd);
  const Tensor g = v.weight.defined() ? mul(v.dy, v.weight) : v.dy;
  const Tensor p = mul(v.total(mul(v.ddx, xh)), inverse), q = mul(v.total(mul(g, xh)), inverse);  // avg(ddx xh), avg(g xh)
  GradPieces out;
  Tensor for_g = sub(v.ddx, mul(xh, p)), explicit_rstd = sub(v.total(mul(v.ddx, g)), mul(mul(p, q), v.count()));
  if (centred) {
    const Tensor average = mul(v.total(v.ddx), inverse);
    for_g = sub(for_g, average);
    explicit_rstd = sub(explicit_rstd, mul(average, v.total(g)));
    out.dmean = average;
  }
  for_g = mul(for_g, v.rstd);
  explicit_rstd = sub(explicit_rstd, mul(mul(v.drstd, v.rstd), mul(p, 2)));
  out.drstd = neg(mul(square_rstd, p));
  Tensor for_xh = neg(mul(v.rstd, add(mul(v.ddx, q), mul(g, p))));
  for_xh = sub(for_xh, mul(mul(v.drstd, mul(square_rstd, inverse)), v.ddx));
  out.dy = v.weight.defined() ? mul(for_g, v.weight) : for_g;
  if (v.weight.defined()) {
    for_xh = add(for_xh, mul(v.ddweight, v.dy));
    out.dy = add(out.dy, mul(v.ddweight, xh));
    if (v.ddbias.defined()) out.dy = add(out.dy, v.ddbias);
    out.weight = mul(for_g, v.dy);
  }
  out.x = mul(for_xh, v.rstd);
  if (centred) out.mean = neg(mul(v.rstd, v.total(for_xh)));
  out.rstd = add(explicit_rstd, v.total(mul(for_xh, from_mean)));
  return out;
}

// Reshapes a tensor if it is defined.
Tensor shaped(const Tensor& t, const Shape& shape) { return t.defined() ? reshape(t, shape) : t; }

// The shapes of x, the statistics and the weights in the common form, and the axes that share a statistic.
struct GradForm {
  Shape x, statistic, weight;
  Ints axes;
};

// The operands of a gradient op in the common form. The op has a mean, and its second statistic is rstd.
GradVjp in_form(const Vjp& b, const GradForm& form) {
  const bool weighted = b.n_inputs() > 6;
  return {shaped(b.x(0), form.x),
          shaped(b.x(1), form.x),
          shaped(b.x(2), form.statistic),
          shaped(b.x(3), form.statistic),
          shaped(b.x(5), form.statistic),
          weighted ? shaped(b.x(6), form.weight) : Tensor(),
          shaped(b.dy(0), form.x),
          weighted ? shaped(b.dy(1), form.weight) : Tensor(),
          weighted ? shaped(b.dy(2), form.weight) : Tensor(),
          form.axes};
}

void pass_on_pieces(Vjp& b, const GradForm& form, const GradPieces& out) {
  b.dx(0, reshape(out.x, b.x(0).shape()));
  b.dx(1, reshape(out.dy, b.x(1).shape()));
  b.dx(2, reshape(out.mean, b.x(2).shape()));
  b.dx(3, reshape(out.rstd, b.x(3).shape()));
  b.dx(4, reshape(out.dmean, b.x(4).shape()));
  b.dx(5, reshape(out.drstd, b.x(5).shape()));
  if (b.n_inputs() > 6 && b.needs(6)) b.dx(6, reshape(sum_to(out.weight, form.weight, b.site()), b.x(6).shape()));
}

Shape rows_shape(const Vjp& b) {
  std::int64_t rows = 1, length = 1;
  const int kept = b.x(0).rank() - static_cast<int>(b.attributes<LayerNormAttrs>().dims);
  for (int d = 0; d < b.x(0).rank(); ++d) (d < kept ? rows : length) *= b.x(0).size(d);
  return {rows, length};
}

void vjp_layer_norm_grad(Vjp& b) {
  const Shape x = rows_shape(b);
  const GradForm form{x, {x[0], 1}, {1, x[1]}, {1}};
  pass_on_pieces(b, form, grad_vjp(in_form(b, form)));
}

void vjp_group_norm_grad(Vjp& b) {
  const Tensor& x = b.x(0);
  const std::int64_t groups = b.attributes<GroupNormAttrs>().groups, per_group = x.size(1) / groups;
  std::int64_t plane = 1;
  for (int d = 2; d < x.rank(); ++d) plane *= x.size(d);
  const GradForm form{{x.size(0), groups, per_group, plane}, {x.size(0), groups, 1, 1}, {1, groups, per_group, 1}, {2, 3}};
  pass_on_pieces(b, form, grad_vjp(in_form(b, form)));
}

// batch_norm has the variance in place of rstd. rstd = (variance + eps)^-1/2 and drstd = -2 dvariance / rstd^3 convert to the
// common form, and their derivatives convert back.
void vjp_batch_norm_grad(Vjp& b) {
  const Tensor& x = b.x(0);
  std::int64_t plane = 1;
  for (int d = 2; d < x.rank(); ++d) plane *= x.size(d);
  const GradForm form{{x.size(0), x.size(1), plane}, {1, x.size(1), 1}, {1, x.size(1), 1}, {0, 2}};
  GradVjp v = in_form(b, form);
  const Tensor dvariance = v.drstd;
  v.rstd = rsqrt(add(v.rstd, b.attributes<BatchNormAttrs>().eps));
  const Tensor cube = mul(v.rstd, square(v.rstd));
  v.drstd = div(mul(dvariance, -2), cube);
  GradPieces out = grad_vjp(v);
  const Tensor through_drstd = mul(mul(out.drstd, dvariance), div(6, mul(cube, v.rstd)));
  out.rstd = mul(add(out.rstd, through_drstd), mul(cube, -0.5));
  out.drstd = div(mul(out.drstd, -2), cube);
  pass_on_pieces(b, form, out);
}

void vjp_rms_norm_grad(Vjp& b) {
  const Shape x = rows_shape(b), statistic{x[0], 1}, weight{1, x[1]};
  const bool weighted = b.n_inputs() > 4;
  const GradPieces out = grad_vjp({shaped(b.x(0), x),
                                   shaped(b.x(1), x),
                                   Tensor(),
                                   shaped(b.x(2), statistic),
                                   shaped(b.x(3), statistic),
                                   weighted ? shaped(b.x(4), weight) : Tensor(),
                                   shaped(b.dy(0), x),
                                   weighted ? shaped(b.dy(1), weight) : Tensor(),
                                   Tensor(),
                                   {1}});
  b.dx(0, reshape(out.x, b.x(0).shape()));
  b.dx(1, reshape(out.dy, b.x(1).shape()));
  b.dx(2, reshape(out.rstd, b.x(2).shape()));
  b.dx(3, reshape(out.drstd, b.x(3).shape()));
  if (weighted && b.needs(4)) b.dx(4, reshape(sum_to(out.weight, weight, b.site()), b.x(4).shape()));
}

// The gradient of y = (x - mean) (variance + eps)^-1/2 weight + bias.
void vjp_batch_norm_inference(Vjp& b) {
  const std::int64_t channels = b.x(0).size(1);
  Shape spread;
  spread.rank = b.x(0).rank();
  for (int d = 0; d < spread.rank; ++d) spread[d] = d == 1 ? channels : 1;
  const bool weighted = b.n_inputs() > 3;
  const Tensor rstd = rsqrt(add(b.x(2), b.attributes<BatchNormAttrs>().eps));
  const Tensor scale = weighted ? mul(rstd, b.x(3)) : rstd;
  if (b.needs(0)) b.dx(0, mul(b.dy(), reshape(scale, spread)));
  auto total = [&](const Tensor& t) { return reshape(sum_to(t, spread, b.site()), {channels}); };
  const bool weight_needed = weighted && b.needs(3), bias_needed = b.n_inputs() > 4 && b.needs(4);
  if (b.needs(1) || bias_needed) {
    const Tensor plain = total(b.dy());
    if (b.needs(1)) b.dx(1, neg(mul(plain, scale)));
    if (bias_needed) b.dx(4, plain);
  }
  if (b.needs(2) || weight_needed) {
    const Tensor product = mul(total(mul(b.dy(), sub(b.x(0), reshape(b.x(1), spread)))), rstd);
    if (b.needs(2)) b.dx(2, mul(mul(product, scale), mul(rstd, -0.5)));
    if (weight_needed) b.dx(3, product);
  }
}

// ---- functions for authors ----

// The operands, followed by the weight and the bias if they are defined.
std::vector<Tensor> with_affine(const char* op, std::vector<Tensor> operands, const Tensor& weight, const Tensor& bias,
                                Site site) {
  if (bias.defined() && !weight.defined()) throw TypeError(error_text(op, "a bias needs a weight", site));
  if (weight.defined()) operands.push_back(weight);
  if (bias.defined()) operands.push_back(bias);
  return operands;
}

}  // namespace

BatchNormResult batch_norm(const Arg& x, const Tensor& weight, const Tensor& bias, double eps) {
  const BatchNormAttrs attrs{eps};
  std::vector<Tensor> r =
      apply_all(ops::batch_norm, with_affine("batch_norm", {x.tensor()}, weight, bias, x.site()), &attrs, x.site());
  return {r[0], r[1], r[2]};
}

Tensor batch_norm_inference(const Arg& x, const Tensor& mean, const Tensor& variance, const Tensor& weight, const Tensor& bias,
                            double eps) {
  const BatchNormAttrs attrs{eps};
  const char* op = "batch_norm_inference";
  return apply_all(ops::batch_norm_inference, with_affine(op, {x.tensor(), mean, variance}, weight, bias, x.site()), &attrs,
                   x.site())[0];
}

void ema_in_place(const Arg& running, const Tensor& batch, double momentum) {
  const NoGrad no_grad;
  const EmaAttrs attrs{momentum};
  const Tensor in[2] = {running.tensor(), batch};
  apply_in_place(ops::ema, in, &attrs, running.site());
}

Tensor layer_norm(const Arg& x, const Tensor& weight, const Tensor& bias, double eps, std::int64_t dims) {
  const LayerNormAttrs attrs{weight.defined() ? weight.rank() : dims, eps};
  return apply_all(ops::layer_norm, with_affine("layer_norm", {x.tensor()}, weight, bias, x.site()), &attrs, x.site())[0];
}

Tensor rms_norm(const Arg& x, const Tensor& weight, double eps, std::int64_t dims) {
  const LayerNormAttrs attrs{weight.defined() ? weight.rank() : dims, eps};
  return apply_all(ops::rms_norm, with_affine("rms_norm", {x.tensor()}, weight, {}, x.site()), &attrs, x.site())[0];
}

Tensor group_norm(const Arg& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const GroupNormAttrs attrs{groups, eps};
  return apply_all(ops::group_norm, with_affine("group_norm", {x.tensor()}, weight, bias, x.site()), &attrs, x.site())[0];
}

namespace {

const Tensor& with_channels(const char* op, const Arg& x) {
  if (!x.tensor().defined()) throw TypeError(error_text(op, "the operand is undefined", x.site()));
  if (x.tensor().rank() < 2)
    throw TypeError(error_text(op, fmt::format("needs at least 2 dimensions, got {}", to_string(x.tensor().type())), x.site()));
  return x.tensor();
}

}  // namespace

Tensor instance_norm(const Arg& x, const Tensor& weight, const Tensor& bias, double eps) {
  return group_norm(x, std::max<std::int64_t>(1, with_channels("instance_norm", x).size(1)), weight, bias, eps);
}

Tensor local_response_norm(const Arg& x, std::int64_t size, double alpha, double beta, double k) {
  const Tensor& t = with_channels("local_response_norm", x);
  if (size < 1)
    throw TypeError(error_text("local_response_norm", fmt::format("needs a size of at least 1, got {}", size), x.site()));
  const std::int64_t below = size / 2, channels = t.size(1);  // an even window has one channel more below than above
  Ints before, after;
  for (int d = 0; d < t.rank(); ++d) {
    before.push_back(d == 1 ? below : 0);
    after.push_back(d == 1 ? size - 1 - below : 0);
  }
  const Tensor padded = pad(square(x), before, after);
  Tensor total = slice(padded, 1, 0, channels);
  for (std::int64_t i = 1; i < size; ++i) total = add(total, slice(padded, 1, i, i + channels));
  return div(x, pow(add(mul(total, alpha / static_cast<double>(size)), k), beta));
}

Tensor normalize(const Arg& x, double p, std::int64_t axis, double eps) {
  if (p == 2) return div(x, sqrt(maximum(sum(square(x), {axis}, true), eps * eps)));  // the gradient of sqrt(0) is infinite
  if (p == 1) return div(x, maximum(sum(abs(x), {axis}, true), eps));
  if (std::isinf(p) && p > 0) return div(x, maximum(max(abs(x), {axis}, true), eps));
  throw TypeError(error_text("normalize", fmt::format("p must be 1, 2 or infinity, not {}", p), x.site()));
}

Tensor softmin(const Arg& x, std::int64_t axis) { return softmax(neg(x), axis); }

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/norm.h>
