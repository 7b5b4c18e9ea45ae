// Inference, cost and gradients of the losses, and the functions for authors.
//
// Losses over classes have a gradient op with a gradient of its own, so second gradients work; weights of classes get
// gradients too. The other losses are one elementwise op or a composition, then a reduction ("mean", "sum", "none"):
//
//       mse_loss(x, t)  =  mean(square(x - t))
#include <tapedeck/engine/eager/call_scope.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

// ---- types ----

bool is_label(DType d) { return d == DType::i32 || d == DType::i64; }

void require_reduction(const Infer& f, Name reduction) {
  const std::string_view r = reduction.view();
  if (r != "none" && r != "mean" && r != "sum") f.fail(fmt::format("reduction must be none, mean or sum, not '{}'", r));
}

// The type in which losses of scores are computed.
DType type_of_sums(DType scores) { return kernels::is_half(scores) ? DType::f32 : scores; }

bool has_one_of(const Type& t, const Shape& shape, DType a, DType b) {
  return t.shape == shape && (t.dtype == a || t.dtype == b);
}

// Infers the loss of scores [n, c, ...] with labels [n, ...] and optional weights [c], and writes it to output 0, with the type
// of the scores. The weights have this type, or `wide`.
void infer_class_loss(Infer& f, const char* what, const Type& scores, const Type& labels, const Type* weights, Name reduction,
                      DType wide) {
  infer_require_float(f, scores);
  if (scores.shape.rank < 2) f.fail(fmt::format("{} need at least two dimensions, got {}", what, to_string(scores)));
  if (!is_label(labels.dtype)) f.fail(fmt::format("labels must be i32 or i64, not {}", to_string(labels)));
  Shape rows;
  for (int d = 0; d < scores.shape.rank; ++d)
    if (d != 1) rows.sizes[rows.rank++] = scores.shape[d];
  if (labels.shape != rows) f.fail(fmt::format("labels {} do not fit {} {}", to_string(labels), what, to_string(scores)));
  if (scores.shape[1] < 1) f.fail(fmt::format("no classes in {}", to_string(scores)));
  const Type expected{scores.dtype, {scores.shape[1]}};
  if (weights && !has_one_of(*weights, expected.shape, expected.dtype, wide))
    f.fail(fmt::format("the weights must be {}, not {}", to_string(expected), to_string(*weights)));
  require_reduction(f, reduction);
  f.outputs.assign(1, Type{scores.dtype, reduction.view() == "none" ? rows : Shape{}});
}

void require_smoothing(const Infer& f) {
  const double s = f.attributes<CrossEntropyAttrs>().label_smoothing;
  if (!(s >= 0 && s <= 1)) f.fail("label_smoothing must be between 0 and 1");
}

void infer_cross_entropy(Infer& f) {
  const auto& a = f.attributes<CrossEntropyAttrs>();
  const DType wide = type_of_sums(f.inputs[0].dtype);
  require_smoothing(f);
  infer_class_loss(f, "logits", f.inputs[0], f.inputs[1], f.inputs.size() > 2 ? &f.inputs[2] : nullptr, a.reduction, wide);
  if (a.loss_in_f32) f.outputs[0].dtype = wide;
}

void require_loss_gradient(const Infer& f, const Type& dloss) {
  if (dloss != f.outputs[0]) f.fail(fmt::format("the gradient has type {}, not {}", to_string(dloss), to_string(f.outputs[0])));
}

void infer_cross_entropy_grad(Infer& f) {
  const Type logits = f.inputs[0];
  const DType wide = type_of_sums(logits.dtype);
  require_smoothing(f);
  infer_class_loss(f, "logits", logits, f.inputs[1], f.inputs.size() > 3 ? &f.inputs[3] : nullptr,
                   f.attributes<CrossEntropyAttrs>().reduction, wide);
  if (!has_one_of(f.inputs[2], f.outputs[0].shape, logits.dtype, wide)) require_loss_gradient(f, f.inputs[2]);
  f.outputs.assign(1, logits);
}

void infer_nll_loss(Infer& f) {
  infer_class_loss(f, "log probabilities", f.inputs[0], f.inputs[1], f.inputs.size() > 2 ? &f.inputs[2] : nullptr,
                   f.attributes<NllAttrs>().reduction, f.inputs[0].dtype);
}

void infer_nll_loss_grad(Infer& f) {
  const auto& a = f.attributes<NllGradAttrs>();
  const Shape& rows = f.inputs[0].shape;
  if (rows.rank < 1 || rows.rank == kMaxRank)
    f.fail(fmt::format("labels need 1 to {} dimensions, got {}", kMaxRank - 1, to_string(f.inputs[0])));
  Type scores{f.inputs[1].dtype, {}};
  scores.shape.rank = rows.rank + 1;
  scores.shape.sizes[0] = rows[0];
  scores.shape.sizes[1] = a.classes;
  for (int d = 1; d < rows.rank; ++d) scores.shape.sizes[d + 1] = rows[d];
  if (a.classes < 1 || checked_bytes(scores.dtype, {scores.shape.sizes, static_cast<std::size_t>(scores.shape.rank)}) < 0)
    f.fail(fmt::format("cannot make gradients of {} classes for labels {}", a.classes, to_string(f.inputs[0])));
  infer_class_loss(f, "log probabilities", scores, f.inputs[0], f.inputs.size() > 2 ? &f.inputs[2] : nullptr, a.reduction,
                   scores.dtype);
  require_loss_gradient(f, f.inputs[1]);
  f.outputs.assign(1, scores);
}

// The bytes of `rows` rows of states for each sequence, or -1 if the number is too large.
std::int64_t ctc_bytes(std::span<const Type> inputs, std::int64_t rows) {
  const std::int64_t sizes[3] = {inputs[1].shape[0], rows, 2 * inputs[1].shape[1] + 5};
  return checked_bytes(inputs[0].dtype, sizes);
}
std::int64_t ctc_workspace(std::span<const Type> inputs, std::int64_t rows) { return ctc_bytes(inputs, rows); }

void infer_ctc_loss(Infer& f) {
  const Type &scores = f.inputs[0], &targets = f.inputs[1];
  infer_require_float(f, scores);
  if (scores.shape.rank != 3) f.fail(fmt::format("log probabilities must be [time, n, classes], got {}", to_string(scores)));
  const Shape batch{scores.shape[1]};
  if (!is_label(targets.dtype) || targets.shape.rank != 2 || targets.shape[0] != batch[0])
    f.fail(fmt::format("targets must be i32 or i64 [{}, length], not {}", batch[0], to_string(targets)));
  for (std::size_t i = 2; i < 4; ++i)
    if (!is_label(f.inputs[i].dtype) || f.inputs[i].shape != batch)
      f.fail(fmt::format("lengths must be i32[{0}] or i64[{0}], not {1}", batch[0], to_string(f.inputs[i])));
  const std::int64_t blank = f.attributes<CtcAttrs>().blank;
  if (blank < 0 || blank >= scores.shape[2]) f.fail(fmt::format("the blank {} is no class of {}", blank, to_string(scores)));
  if (ctc_bytes(f.inputs, scores.shape[0] + 2) < 0)
    f.fail(fmt::format("{} and {} are too large", to_string(scores), to_string(targets)));
  f.outputs.assign(1, Type{scores.dtype, batch});
}

void infer_ctc_loss_grad(Infer& f) {
  infer_ctc_loss(f);
  require_loss_gradient(f, f.inputs[4]);
  f.outputs.assign(1, f.inputs[0]);
}

// ---- cost ----

Cost cost_cross_entropy(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  Cost cost = cost_like_copy(inputs, outputs, attrs);
  cost.flops = 20.0 * static_cast<double>(inputs[0].numel());
  return cost;
}

Cost cost_ctc(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  Cost cost = cost_like_copy(inputs, outputs, attrs);
  cost.flops =
      100.0 * static_cast<double>(inputs[0].shape[0]) * static_cast<double>(inputs[1].numel() * 2 + inputs[1].shape[0]);
  return cost;
}

// ---- gradients ----

Tensor of_type(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : cast(t, dtype); }

// Gradients of gradients of halves are computed in f32.
Tensor widened(const Tensor& t) { return of_type(t, type_of_sums(t.dtype())); }

Tensor class_loss(const Op& op, const Tensor& scores, const Tensor& labels, const Tensor* weights, const void* attrs,
                  Site site) {
  if (weights) return apply(op, {&scores, &labels, weights}, attrs, site);
  return apply(op, {&scores, &labels}, attrs, site);
}

Tensor cross_entropy_grad(const Tensor& logits, const Tensor& labels, const Tensor& dloss, const Tensor* weights,
                          const CrossEntropyAttrs& attrs, Site site) {
  if (weights) return apply(ops::cross_entropy_grad, {&logits, &labels, &dloss, weights}, &attrs, site);
  return apply(ops::cross_entropy_grad, {&logits, &labels, &dloss}, &attrs, site);
}

Tensor nll_loss_grad(const Tensor& labels, const Tensor& dloss, const Tensor* weights, const NllGradAttrs& attrs, Site site) {
  if (weights) return apply(ops::nll_loss_grad, {&labels, &dloss, weights}, &attrs, site);
  return apply(ops::nll_loss_grad, {&labels, &dloss}, &attrs, site);
}

// The weight of each label: 1 without weights, and 0 for labels that are ignored.
Tensor label_weights(const Tensor& labels, const Tensor* weights, const Shape& scores, std::int64_t ignore_index, DType dtype,
                     Site site) {
  const NllAttrs attrs{ignore_index, "none"};
  return class_loss(ops::nll_loss, full(scores, -1, dtype, site), labels, weights, &attrs, site);
}

// Gives rows [n, ...] a dimension of size 1 for the classes, so that they broadcast to [n, c, ...].
Tensor beside_classes(const Tensor& rows) {
  Shape shape = rows.shape();
  std::copy_backward(shape.sizes + 1, shape.sizes + shape.rank, shape.sizes + shape.rank + 1);
  shape.sizes[1] = 1;
  ++shape.rank;
  return reshape(rows, shape);
}

// All axes except that of the classes.
Ints row_axes(int rank) {
  Ints axes;
  for (int d = 0; d < rank; ++d)
    if (d != 1) axes.push_back(d);
  return axes;
}

struct ClassLoss {
  double smoothing;
  std::int64_t ignore_index;
  Name reduction;
};

// The gradient with respect to the class weights w, for a loss sum(w * targets * per_class) over [n, c, ...] with the
// gradient dloss; `targets` are the smoothed labels. With "mean" the loss is divided by the sum of the labels' weights. A
// larger weight then makes the divisor larger too; `total` is dloss times the loss, which this part of the gradient needs.
Tensor weight_gradient(const Tensor& per_class, const Tensor& labels, const Tensor& weights, const Tensor& dloss,
                       const Tensor& total, const ClassLoss& a, Site site) {
  const DType dtype = per_class.dtype();
  const Shape& shape = per_class.shape();
  // -1 at the label of each row that is not ignored. This is the gradient of nll_loss.
  const Tensor hot =
      nll_loss_grad(labels, full(labels.shape(), -1, dtype, site), nullptr, {shape[1], a.ignore_index, "none"}, site);
  Tensor targets = hot;
  if (a.smoothing != 0) {
    const Tensor counts = beside_classes(label_weights(labels, nullptr, shape, a.ignore_index, dtype, site));
    targets = add(mul(hot, 1 - a.smoothing), mul(counts, a.smoothing / static_cast<double>(shape[1])));
  }
  const bool none = a.reduction.view() == "none";
  const Tensor scaled = mul(mul(targets, per_class), none ? beside_classes(dloss) : dloss);
  const Tensor plain = sum(scaled, row_axes(shape.rank));
  if (a.reduction.view() != "mean") return plain;
  const Tensor divisor = sum(label_weights(labels, &weights, shape, a.ignore_index, dtype, site));
  return div(sub(plain, mul(total, sum(hot, row_axes(shape.rank)))), divisor);
}

void vjp_cross_entropy(Vjp& b) {
  CrossEntropyAttrs a = b.attributes<CrossEntropyAttrs>();
  a.loss_in_f32 = false;  // the gradient has the type of the scores in any case
  const Tensor* weights = b.n_inputs() > 2 ? &b.x(2) : nullptr;
  if (b.needs(0)) b.dx(0, cross_entropy_grad(b.x(0), b.x(1), b.dy(), weights, a, b.site()));
  if (!weights || !b.needs(2)) return;
  const Tensor dy = widened(b.dy()), total = mul(dy, widened(b.y()));
  b.dx(2, of_type(weight_gradient(neg(log_softmax(widened(b.x(0)), 1)), b.x(1), widened(*weights), dy, total,
                                  {a.label_smoothing, a.ignore_index, a.reduction}, b.site()),
                  weights->dtype()));
}

// The gradient of cross_entropy is u_k = s (A p_k - B_k) for each row, with p = softmax(x). A and B hold weights, and s is
// the scale of the row. This is the gradient of u.
void vjp_cross_entropy_grad(Vjp& b) {
  const auto& a = b.attributes<CrossEntropyAttrs>();
  const Tensor class_weights = b.n_inputs() > 3 ? widened(b.x(3)) : Tensor();
  const Tensor* weights = b.n_inputs() > 3 ? &class_weights : nullptr;
  const Tensor x = widened(b.x(0)), dloss = widened(b.x(2)), h = widened(b.dy());
  const Tensor& labels = b.x(1);
  const Shape& shape = x.shape();
  const bool none = a.reduction.view() == "none";
  if (b.needs(2)) {
    const Tensor unit = cross_entropy_grad(x, labels, full(dloss.shape(), 1, x.dtype(), b.site()), weights, a, b.site());
    b.dx(2, of_type(none ? sum(mul(h, unit), {1}) : sum(mul(h, unit)), b.x(2).dtype()));
  }
  if (b.needs(0)) {
    const Tensor own = label_weights(labels, weights, shape, a.ignore_index, x.dtype(), b.site());
    Tensor scale = own;
    if (weights && a.label_smoothing != 0) {
      const Tensor counts = label_weights(labels, nullptr, shape, a.ignore_index, x.dtype(), b.site());
      scale = add(mul(own, 1 - a.label_smoothing), mul(counts, mul(mean(*weights), a.label_smoothing)));
    }
    if (a.reduction.view() == "mean") scale = div(scale, sum(own));
    b.dx(0, of_type(mul(softmax_grad(softmax(x, 1), h, AxisAttrs{1}), beside_classes(mul(scale, dloss))), b.x(0).dtype()));
  }
  if (weights && b.needs(3)) {
    const Tensor per_class = sub(sum(mul(h, softmax(x, 1)), {1}, true), h);
    b.dx(3, of_type(weight_gradient(per_class, labels, *weights, dloss, sum(mul(h, widened(b.y()))),
                                    {a.label_smoothing, a.ignore_index, a.reduction}, b.site()),
                    b.x(3).dtype()));
  }
}

void vjp_nll_loss(Vjp& b) {
  const auto& a = b.attributes<NllAttrs>();
  const Tensor* weights = b.n_inputs() > 2 ? &b.x(2) : nullptr;
  if (b.needs(0)) b.dx(0, nll_loss_grad(b.x(1), b.dy(), weights, {b.x(0).shape()[1], a.ignore_index, a.reduction}, b.site()));
  if (weights && b.needs(2))
    b.dx(2, weight_gradient(neg(b.x(0)), b.x(1), *weights, b.dy(), mul(b.dy(), b.y()), {0, a.ignore_index, a.reduction},
                            b.site()));
}

// nll_loss_grad is linear in dloss, and its transpose is nll_loss.
void vjp_nll_loss_grad(Vjp& b) {
  const auto& a = b.attributes<NllGradAttrs>();
  const Tensor* weights = b.n_inputs() > 2 ? &b.x(2) : nullptr;
  const NllAttrs forward{a.ignore_index, a.reduction};
  if (b.needs(1)) b.dx(1, class_loss(ops::nll_loss, b.dy(), b.x(0), weights, &forward, b.site()));
  if (weights && b.needs(2))
    b.dx(2, weight_gradient(neg(b.dy()), b.x(0), *weights, b.x(1), sum(mul(b.dy(), b.y())), {0, a.ignore_index, a.reduction},
                            b.site()));
}

// The vjp uses that softplus(-x) is the loss for the target 1.
void vjp_binary_cross_entropy_with_logits(Vjp& b) {
  const Tensor &x = b.x(0), &t = b.x(1);
  const bool weighted = b.n_inputs() > 2;
  auto tail = [&] {
    const Tensor one = full({}, 1, x.dtype(), b.site());
    return apply(ops::binary_cross_entropy_with_logits, {&x, &one}, nullptr, b.site());
  };
  if (!weighted) {
    if (b.needs(0)) b.dx(0, mul(b.dy(), sub(sigmoid(x), t)));
    if (b.needs(1)) b.dx(1, neg(mul(b.dy(), x)));
    return;
  }
  const Tensor& positive = b.x(2);
  if (b.needs(0)) b.dx(0, mul(b.dy(), sub(sub(1, t), mul(add(mul(sub(positive, 1), t), 1), sigmoid(neg(x))))));
  if (b.needs(1)) b.dx(1, mul(b.dy(), sub(mul(sub(positive, 1), tail()), x)));
  if (b.needs(2)) b.dx(2, mul(b.dy(), mul(t, tail())));
}

// ---- helpers of the functions for authors ----

[[noreturn]] void refuse(const char* op, const std::string& message, Site site) {
  throw TypeError(error_text(op, message, site));
}

void require_defined(const char* op, std::initializer_list<const Tensor*> operands, Site site) {
  for (const Tensor* t : operands)
    if (!t->defined()) refuse(op, "an operand is undefined", site);
}

// Checks that both are defined and floating, and have the same shape.
void require_pair(const char* op, const Arg& x, const Tensor& target) {
  require_defined(op, {&x.tensor(), &target}, x.site());
  const Type a = x.tensor().type(), b = target.type();
  if (!is_floating(a.dtype)) refuse(op, fmt::format("needs a floating type, got {}", to_string(a)), x.site());
  if (a.shape != b.shape)
    refuse(op, fmt::format("the target {} does not have the shape of {}", to_string(b), to_string(a)), x.site());
}

Tensor reduced(const char* op, const Tensor& losses, Name reduction, Site site) {
  const std::string_view r = reduction.view();
  if (r == "none") return losses;
  if (r == "mean") return mean(losses);
  if (r == "sum") return sum(losses);
  refuse(op, fmt::format("reduction must be none, mean or sum, not '{}'", r), site);
}

Tensor of_pair(const Op& op, const Arg& x, const Tensor& target, const void* attrs = nullptr) {
  auto [a, b] = promoted(op.name, x, target);
  return apply(op, {&a, &b}, attrs, x.site());
}

// The cross entropy of targets that are probabilities [n, c, ...].
Tensor soft_cross_entropy(const Arg& logits, const Tensor& target, const CrossEntropyOptions& o) {
  const Site site = logits.site();
  const CallScope scope(site);
  const Shape& shape = target.shape();
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    refuse("cross_entropy", "label_smoothing must be between 0 and 1", site);
  if (shape.rank < 2)
    refuse("cross_entropy", fmt::format("logits need at least two dimensions, got {}", to_string(logits.tensor().type())),
           site);
  Tensor q = target;
  if (o.label_smoothing != 0) q = add(mul(q, 1 - o.label_smoothing), o.label_smoothing / static_cast<double>(shape[1]));
  if (o.weights.defined()) {
    const Type expected{target.dtype(), {shape[1]}};
    if (o.weights.shape() != expected.shape)
      refuse("cross_entropy", fmt::format("the weights must be {}, not {}", to_string(expected), to_string(o.weights.type())),
             site);
    Shape column = shape;
    for (int d = 0; d < column.rank; ++d)
      if (d != 1) column.sizes[d] = 1;
    q = mul(q, reshape(o.weights, column));
  }
  const Tensor losses = neg(sum(mul(log_softmax(logits, 1), q), {1}));
  return reduced("cross_entropy", losses, o.reduction, site);
}

}  // namespace

// ---- classes ----

Tensor cross_entropy(const Arg& logits, const Tensor& labels, const CrossEntropyOptions& o) {
  if (logits.tensor().defined() && labels.defined() && is_floating(labels.dtype()) && labels.shape() == logits.tensor().shape())
    return soft_cross_entropy(logits, labels, o);
  const bool in_f32 = thread_state().autocast && logits.tensor().defined() && kernels::is_half(logits.tensor().dtype());
  const CrossEntropyAttrs attrs{o.label_smoothing, o.ignore_index, o.reduction, in_f32};
  return class_loss(ops::cross_entropy, logits.tensor(), labels, o.weights.defined() ? &o.weights : nullptr, &attrs,
                    logits.site());
}

Tensor nll_loss(const Arg& log_probs, const Tensor& labels, const NllOptions& o) {
  const NllAttrs attrs{o.ignore_index, o.reduction};
  return class_loss(ops::nll_loss, log_probs.tensor(), labels, o.weights.defined() ? &o.weights : nullptr, &attrs,
                    log_probs.site());
}

// ---- differences ----

Tensor mse_loss(const Arg& x, const Tensor& target, Name reduction) {
  const CallScope scope(x.site());
  require_pair("mse_loss", x, target);
  return reduced("mse_loss", square(sub(x, target)), reduction, x.site());
}

Tensor l1_loss(const Arg& x, const Tensor& target, Name reduction) {
  const CallScope scope(x.site());
  require_pair("l1_loss", x, target);
  return reduced("l1_loss", abs(sub(x, target)), reduction, x.site());
}

namespace {
Tensor huber_of(const Tensor& d, double delta, Site site) {
  const HuberAttrs attrs{delta};
  return apply(ops::huber, {&d}, &attrs, site);
}
}  // namespace

Tensor huber(const Arg& d, double delta) { return huber_of(d.tensor(), delta, d.site()); }

Tensor huber_loss(const Arg& x, const Tensor& target, double delta, Name reduction) {
  const CallScope scope(x.site());
  require_pair("huber_loss", x, target);
  return reduced("huber_loss", huber_of(sub(x, target), delta, x.site()), reduction, x.site());
}

Tensor smooth_l1_loss(const Arg& x, const Tensor& target, double beta, Name reduction) {
  const CallScope scope(x.site());
  if (beta == 0) return l1_loss(x, target, reduction);
  require_pair("smooth_l1_loss", x, target);
  if (!(beta > 0)) refuse("smooth_l1_loss", "beta must be at least 0", x.site());
  const Tensor loss = reduced("smooth_l1_loss", huber_of(sub(x, target), beta, x.site()), reduction, x.site());
  return beta == 1 ? loss : mul(loss, 1 / beta);
}

// ---- probabilities ----

Tensor binary_cross_entropy(const Arg& p, const Tensor& target, const BceOptions& o) {
  const CallScope scope(p.site());
  require_pair("binary_cross_entropy", p, target);
  if (o.pos_weight.defined()) refuse("binary_cross_entropy", "pos_weight is for logits only", p.site());
  const Tensor losses = of_pair(ops::binary_cross_entropy, p, target);
  return reduced("binary_cross_entropy", o.weight.defined() ? mul(losses, o.weight) : losses, o.reduction, p.site());
}

Tensor binary_cross_entropy_with_logits(const Arg& x, const Tensor& target, const BceOptions& o) {
  const CallScope scope(x.site());
  const char* name = "binary_cross_entropy_with_logits";
  require_pair(name, x, target);
  Tensor losses;
  if (o.pos_weight.defined()) {
    auto [a, b] = promoted(name, x, target);
    const Tensor positive = cast(o.pos_weight, a.dtype());
    losses = apply(ops::binary_cross_entropy_with_logits, {&a, &b, &positive}, nullptr, x.site());
  } else {
    losses = of_pair(ops::binary_cross_entropy_with_logits, x, target);
  }
  return reduced(name, o.weight.defined() ? mul(losses, o.weight) : losses, o.reduction, x.site());
}

Tensor kl_div(const Arg& x, const Tensor& target, Name reduction, bool log_target) {
  const CallScope scope(x.site());
  require_pair("kl_div", x, target);
  const KlDivAttrs attrs{log_target};
  const Tensor losses = of_pair(ops::kl_div, x, target, &attrs);
  if (reduction.view() != "batchmean") return reduced("kl_div", losses, reduction, x.site());
  if (losses.rank() == 0) refuse("kl_div", "batchmean needs a dimension to divide by", x.site());
  return mul(sum(losses), 1.0 / static_cast<double>(losses.shape()[0]));
}

// ---- margins ----

Tensor soft_margin_loss(const Arg& x, const Tensor& y, Name reduction) {
  const CallScope scope(x.site());
  require_pair("soft_margin_loss", x, y);
  const Tensor z = mul(x, cast(y, x.tensor().dtype()));
  const Tensor losses = of_pair(ops::binary_cross_entropy_with_logits, z, full({}, 1, z.dtype(), x.site()));
  return reduced("soft_margin_loss", losses, reduction, x.site());
}

Tensor hinge_embedding_loss(const Arg& x, const Tensor& y, double margin, Name reduction) {
  const CallScope scope(x.site());
  require_pair("hinge_embedding_loss", x, y);
  return reduced("hinge_embedding_loss", where(equal(y, 1), x, relu(sub(margin, x))), reduction, x.site());
}

Tensor margin_ranking_loss(const Arg& a, const Tensor& b, const Tensor& y, double margin, Name reduction) {
  const CallScope scope(a.site());
  require_pair("margin_ranking_loss", a, b);
  require_pair("margin_ranking_loss", a, y);
  const Tensor apart = mul(cast(y, a.tensor().dtype()), sub(a, b));
  return reduced("margin_ranking_loss", relu(sub(margin, apart)), reduction, a.site());
}

Tensor cosine_similarity(const Arg& a, const Tensor& b, std::int64_t axis, double eps) {
  const CallScope scope(a.site());
  require_defined("cosine_similarity", {&a.tensor(), &b}, a.site());
  const int rank = std::max(a.tensor().rank(), b.rank());
  const std::int64_t from_end = axis < 0 ? axis : axis - rank;  // operands of different rank are aligned at the end
  std::vector<Tensor> both{a.tensor(), b};
  const auto length = [&](const Tensor& t) {
    return t.rank() + from_end < 0 ? 1 : t.size(static_cast<int>(t.rank() + from_end));
  };
  const bool inside = from_end >= -rank && from_end < 0;
  if (!inside || length(both[0]) != length(both[1])) both = broadcast_tensors(both, a.site());
  if (!inside) refuse("cosine_similarity", fmt::format("axis {} is outside {}", axis, to_string(both[0].type())), a.site());
  // Each operand is divided by its norm first: products of large elements would overflow.
  const auto unit = [&](const Tensor& t) { return div(t, maximum(norm(t, 2, {from_end}, true), eps)); };
  return sum(mul(unit(both[0]), unit(both[1])), {from_end});
}

Tensor cosine_embedding_loss(const Arg& a, const Tensor& b, const Tensor& y, double margin, Name reduction) {
  const CallScope scope(a.site());
  require_pair("cosine_embedding_loss", a, b);
  require_defined("cosine_embedding_loss", {&y}, a.site());
  const Tensor cosine = cosine_similarity(a, b, -1);
  if (y.shape() != cosine.shape())
    refuse("cosine_embedding_loss",
           fmt::format("the target {} does not fit {}", to_string(y.type()), to_string(a.tensor().type())), a.site());
  return reduced("cosine_embedding_loss", where(equal(y, 1), sub(1, cosine), relu(sub(cosine, margin))), reduction, a.site());
}

Tensor pairwise_distance(const Arg& a, const Tensor& b, double p, double eps, bool keepdims) {
  const CallScope scope(a.site());
  require_defined("pairwise_distance", {&a.tensor(), &b}, a.site());
  if (!(p > 0)) refuse("pairwise_distance", "p must be above 0", a.site());
  const Tensor d = add(sub(a, b), eps);
  if (p == 2) return sqrt(sum(square(d), {-1}, keepdims));
  if (std::isinf(p)) return max(abs(d), {-1}, keepdims);
  if (p == 1) return sum(abs(d), {-1}, keepdims);
  return pow(sum(pow(abs(d), p), {-1}, keepdims), 1 / p);
}

Tensor triplet_margin_loss(const Arg& anchor, const Tensor& positive, const Tensor& negative, const TripletOptions& o) {
  const CallScope scope(anchor.site());
  require_pair("triplet_margin_loss", anchor, positive);
  require_pair("triplet_margin_loss", anchor, negative);
  const Tensor near = pairwise_distance(anchor, positive, o.p, o.eps);
  Tensor far = pairwise_distance(anchor, negative, o.p, o.eps);
  if (o.swap) far = minimum(far, pairwise_distance(positive, negative, o.p, o.eps));
  return reduced("triplet_margin_loss", relu(add(sub(near, far), o.margin)), o.reduction, anchor.site());
}

// ---- distributions ----

Tensor poisson_nll_loss(const Arg& x, const Tensor& target, const PoissonOptions& o) {
  const CallScope scope(x.site());
  require_pair("poisson_nll_loss", x, target);
  const Tensor t = cast(target, x.tensor().dtype());
  Tensor losses = o.log_input ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(add(x, o.eps))));
  if (o.full) {
    const Tensor above = maximum(t, 1);  // log 1! = 0 needs no approximation
    const Tensor stirling = add(sub(mul(above, log(above)), above), mul(log(mul(above, 2 * M_PI)), 0.5));
    losses = add(losses, where(greater(t, 1), stirling, 0));
  }
  return reduced("poisson_nll_loss", losses, o.reduction, x.site());
}

Tensor gaussian_nll_loss(const Arg& x, const Tensor& target, const Tensor& variance, bool full_form, double eps,
                         Name reduction) {
  const CallScope scope(x.site());
  require_pair("gaussian_nll_loss", x, target);
  require_defined("gaussian_nll_loss", {&variance}, x.site());
  const Tensor v = maximum(variance, eps);
  Tensor losses = mul(add(log(v), div(square(sub(x, target)), v)), 0.5);
  if (losses.shape() != x.tensor().shape())
    refuse("gaussian_nll_loss",
           fmt::format("the variance {} does not broadcast to {}", to_string(variance.type()), to_string(x.tensor().type())),
           x.site());
  if (full_form) losses = add(losses, 0.5 * std::log(2 * M_PI));
  return reduced("gaussian_nll_loss", losses, reduction, x.site());
}

// ---- sequences ----

Tensor ctc_loss(const Arg& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CtcOptions& o) {
  const CallScope scope(log_probs.site());
  const CtcAttrs attrs{o.blank, o.zero_infinity};
  const Tensor losses =
      apply(ops::ctc_loss, {&log_probs.tensor(), &targets, &input_lengths, &target_lengths}, &attrs, log_probs.site());
  if (o.reduction.view() != "mean") return reduced("ctc_loss", losses, o.reduction, log_probs.site());
  return mean(div(losses, cast(maximum(target_lengths, 1), losses.dtype())));
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/loss.h>
