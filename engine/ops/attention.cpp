// Inference, cost and gradients of attention. The kernels work on blocks of scores, so neither forward nor backward needs the
// whole matrix [t,s] of scores. Only the gradient of a float mask and second gradients take matrices as large as the scores,
// and are written here with matmul:
//
//       q [b,h,t,d]   k [b,h,s,d]   v [b,h,s,e]   ->   y [b,h,t,e], logsumexp [b,h,t]
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/attention.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/cpu/products/attention_half.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck {
namespace {

void require_mask(const Infer& f, const Type& mask, const Shape& scores) {
  if (mask.dtype != DType::boolean && mask.dtype != f.inputs[0].dtype)
    f.fail(fmt::format("the mask must be bool or {}, not {}", dtype_name(f.inputs[0].dtype), to_string(mask)));
  Shape both;
  if (!broadcast_shapes(mask.shape, scores, &both) || both != scores)
    f.fail(fmt::format("the mask {} does not broadcast to {}", to_string(mask), to_string(scores)));
}

// Checks q, k and v, and the mask if there is an operand number `mask`.
void require_attention(const Infer& f, std::size_t mask) {
  const Type &q = f.inputs[0], &k = f.inputs[1], &v = f.inputs[2];
  infer_require_float(f, q);
  for (const Type* t : {&q, &k, &v}) {
    if (t->dtype != q.dtype) f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(q), to_string(*t)));
    if (t->shape.rank != 4) f.fail(fmt::format("needs [batch,heads,length,size], got {}", to_string(*t)));
    if (t->shape[0] != q.shape[0] || t->shape[1] != q.shape[1])
      f.fail(fmt::format("batch or heads differ: {} and {}", to_string(q), to_string(*t)));
  }
  if (q.shape[3] != k.shape[3]) f.fail(fmt::format("queries {} and keys {} differ in size", to_string(q), to_string(k)));
  if (k.shape[2] != v.shape[2]) f.fail(fmt::format("keys {} and values {} differ in length", to_string(k), to_string(v)));
  if (f.inputs.size() > mask) require_mask(f, f.inputs[mask], {q.shape[0], q.shape[1], q.shape[2], k.shape[2]});
  if (!std::isfinite(f.attributes<AttentionAttrs>().scale)) f.fail("the scale must be finite");
}

Type result_type(const Infer& f) {
  const Shape &q = f.inputs[0].shape, &v = f.inputs[2].shape;
  const Type y{f.inputs[0].dtype, {q[0], q[1], q[2], v[3]}};
  if (checked_bytes(y.dtype, {y.shape.sizes, 4}) < 0) f.fail("too large");
  return y;
}

Type logsumexp_type(const Infer& f) {
  const Shape& q = f.inputs[0].shape;
  const Type l{f.inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32, {q[0], q[1], q[2]}};
  if (checked_bytes(l.dtype, {l.shape.sizes, 3}) < 0) f.fail("too large");
  return l;
}

void infer_attention(Infer& f) {
  require_attention(f, 3);
  f.outputs = {result_type(f), logsumexp_type(f)};
}

void infer_attention_grad(Infer& f) {
  require_attention(f, 7);
  const Type y = result_type(f);
  Type l = logsumexp_type(f);
  if (f.inputs[4].dtype == y.dtype) l.dtype = y.dtype;
  for (std::size_t i : {std::size_t{3}, std::size_t{5}})
    if (f.inputs[i] != y) f.fail(fmt::format("operand {} must be {}, not {}", i, to_string(y), to_string(f.inputs[i])));
  for (std::size_t i : {std::size_t{4}, std::size_t{6}})
    if (f.inputs[i] != l) f.fail(fmt::format("operand {} must be {}, not {}", i, to_string(l), to_string(f.inputs[i])));
  const Type q = f.inputs[0], k = f.inputs[1], v = f.inputs[2];
  f.outputs = {q, k, v};
}

// The number of multiplications of a forward pass: t x s scores times d + e columns. Backward multiplies five blocks where
// forward multiplies two.
double products(std::span<const Type> in, const void* attrs) {
  const Shape &q = in[0].shape, &v = in[2].shape;
  const double scores =
      static_cast<double>(q[0]) * static_cast<double>(q[1]) * static_cast<double>(q[2]) * static_cast<double>(v[2]);
  return scores * static_cast<double>(q[3] + v[3]) * (static_cast<const AttentionAttrs*>(attrs)->causal ? 0.5 : 1);
}

Cost cost_attention(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = 2 * products(in, attrs);
  return cost;
}

Cost cost_attention_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = 5 * products(in, attrs);
  return cost;
}

std::int64_t workspace_attention_grad(std::span<const Type> in, std::span<const Type>, const void*) {
  if (!kernels::is_half(in[0].dtype)) return 0;
  return kernels::cpu::attention_grad_half_workspace(in[0].shape.sizes, in[2].shape.sizes);
}

// A mask [t,s]: whether query i sees key j.
Tensor causal_mask(std::int64_t t, std::int64_t s) {
  std::vector<unsigned char> visible(static_cast<std::size_t>(t * s + 1));
  for (std::int64_t i = 0; i < t; ++i)
    for (std::int64_t j = 0; j <= std::min(i, s - 1); ++j) visible[i * s + j] = 1;
  return from_bytes({DType::boolean, {t, s}}, visible.data());
}

Tensor masked_scores(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a) {
  Tensor scores = mul(matmul(q, transpose_last(k)), a.scale);
  if (mask.defined()) scores = mask.dtype() == DType::boolean ? where(mask, scores, -INFINITY) : add(scores, mask);
  return a.causal ? where(causal_mask(q.size(2), k.size(2)), scores, -INFINITY) : scores;
}

// The matrix P = exp(scores - logsumexp). It is 0 where a query does not see a key, and in all of the row of a query that sees
// none.
Tensor probabilities(const Tensor& scores, const Tensor& logsumexp) {
  const Tensor shift = where(equal(logsumexp, -INFINITY), INFINITY, logsumexp);
  return exp(sub(scores, reshape(shift, {shift.size(0), shift.size(1), shift.size(2), 1})));
}

// The gradient of the scores is P G, elementwise, where G = dy v^T - sum(dy y) + dlogsumexp. This function computes G.
Tensor gradient_before_softmax(const Tensor& v, const Tensor& y, const Tensor& dy, const Tensor& dlogsumexp) {
  const Shape column{dlogsumexp.size(0), dlogsumexp.size(1), dlogsumexp.size(2), 1};
  return sub(matmul(dy, transpose_last(v)), sub(sum(mul(dy, y), {3}, true), reshape(dlogsumexp, column)));
}

// The gradient of a float mask is the gradient of the scores. So it always takes as much memory as the scores.
Tensor mask_gradient(const Vjp& b) {
  const Tensor p = probabilities(masked_scores(b.x(0), b.x(1), b.x(3), b.attributes<AttentionAttrs>()), b.y(1));
  return cast(mul(p, gradient_before_softmax(b.x(2), b.y(0), b.dy(0), b.dy(1))), b.x(3).dtype());
}

void vjp_attention(Vjp& b) {
  std::vector<Tensor> operands = {b.x(0), b.x(1), b.x(2), b.y(0), b.y(1), b.dy(0), b.dy(1)};
  if (b.n_inputs() > 3) operands.push_back(b.x(3));
  const std::vector<Tensor> grads = apply_all(ops::scaled_dot_product_attention_grad, operands, b.attrs, b.site());
  for (int i = 0; i < 3; ++i) b.dx(i, grads[i]);
  if (b.n_inputs() > 3 && b.needs(3)) b.dx(3, mask_gradient(b));
}

// The gradient of the gradient, with matrices [t,s] and sums in f32 or f64. The operands y, logsumexp, dy and dlogsumexp count
// as free, and what they get goes on to the nodes that made them. With the names of above, and a, b, c for the gradients that
// come to dq, dk and dv:
//
//       dq = scale (P G) k          the gradient of P G             U = scale (a k^T + q b^T)
//       dk = scale (P G)^T q        the gradient of G               W = P U
//       dv = P^T dy                 the gradient of the scores      Z = P (U G + dy c^T)
void vjp_attention_grad(Vjp& vjp) {
  const auto& attrs = vjp.attributes<AttentionAttrs>();
  const DType real = vjp.x(4).dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto wide = [&](const Tensor& t) { return cast(t, real); };
  const auto give = [&](int i, const Tensor& g) {
    if (vjp.needs(i)) vjp.dx(i, cast(sum_to(g, vjp.x(i).shape(), vjp.site()), vjp.x(i).dtype()));
  };
  const Tensor q = wide(vjp.x(0)), k = wide(vjp.x(1)), v = wide(vjp.x(2)), y = wide(vjp.x(3)), logsumexp = wide(vjp.x(4));
  const Tensor dy = wide(vjp.x(5)), a = wide(vjp.dy(0)), b = wide(vjp.dy(1)), c = wide(vjp.dy(2));
  Tensor mask = vjp.n_inputs() > 7 ? vjp.x(7) : Tensor();
  if (mask.defined() && mask.dtype() != DType::boolean) mask = wide(mask);
  const Tensor p = probabilities(masked_scores(q, k, mask, attrs), logsumexp);
  const Tensor u = mul(add(matmul(a, transpose_last(k)), matmul(q, transpose_last(b))), attrs.scale), w = mul(p, u);
  const Tensor inner = sum(w, {3}, true);

  const bool needs_scores = vjp.needs(0) || vjp.needs(1) || vjp.needs(4) || (vjp.n_inputs() > 7 && vjp.needs(7));
  if (needs_scores) {
    const Tensor g = gradient_before_softmax(v, y, dy, wide(vjp.x(6)));
    const Tensor z = mul(p, add(mul(u, g), matmul(dy, transpose_last(c)))), pg = mul(p, g);
    give(0, mul(add(matmul(z, k), matmul(pg, b)), attrs.scale));
    give(1, mul(add(matmul(transpose_last(z), q), matmul(transpose_last(pg), a)), attrs.scale));
    give(4, neg(sum(z, {3})));
    if (vjp.n_inputs() > 7) give(7, z);
  }
  give(2, matmul(transpose_last(w), dy));
  give(3, neg(mul(inner, dy)));
  give(5, add(sub(matmul(w, v), mul(inner, y)), matmul(p, c)));
  give(6, reshape(inner, logsumexp.shape()));
}

}  // namespace

Tensor scaled_dot_product_attention(const Arg& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  AttentionAttrs attrs;
  attrs.scale = options.scale;
  attrs.causal = options.causal;
  if (options.scale == 0 && q.tensor().defined() && q.tensor().rank() == 4)
    attrs.scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, q.tensor().size(3))));
  std::vector<Tensor> operands = {q.tensor(), k, v};
  if (options.mask.defined()) operands.push_back(options.mask);
  return apply_all(ops::scaled_dot_product_attention, operands, &attrs, q.site())[0];
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/attention.h>
