// Activations, softmax and losses, with their gradients.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/activation.h>
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/half.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

Term with_alpha(N& n, const char* op, double alpha) { return n.add(op, {n[0]}, n.in(0).dtype, {{"alpha", alpha}}); }

Terms gelu(N& n) {
  return {n.add("Gelu", {n[0]}, n.in(0).dtype, {{"approximate", n.attributes<GeluAttrs>().approximate.str()}})};
}

Terms gelu_grad(N& n) {
  const Term x = n[0], dy = n[1];
  if (n.attributes<GeluAttrs>().approximate == Name("tanh")) {
    const double slope = 2 * std::sqrt(2 / std::numbers::pi);
    const Term s = sigmoid_of(slope * (x + 0.044715 * x * x * x));
    return {dy * (s + x * s * (1 - s) * (slope * (1 + 3 * 0.044715 * x * x)))};
  }
  const Term share = 0.5 * (1 + (x * std::sqrt(0.5)).apply("Erf"));
  return {dy * (share + x * exp_of(-0.5 * x * x) * (1 / std::sqrt(2 * std::numbers::pi)))};
}

Terms silu_grad(N& n) {
  const Term s = sigmoid_of(n[0]);
  return {n[1] * s * (1 + n[0] * (1 - s))};
}

Terms mish_grad(N& n) {
  const Term x = n[0], t = tanh_of(x.apply("Softplus"));
  return {n[1] * (t + x * (1 - t * t) * sigmoid_of(x))};
}

Terms hardswish_grad(N& n) {
  const Term x = n[0], dy = n[1];
  return {choose(x <= -3, 0, choose(x >= 3, dy, dy * (2 * x + 3) / 6))};
}

Terms softplus(N& n) {
  const auto& a = n.attributes<SoftplusAttrs>();
  if (a.beta == 1 && a.threshold == 20) return {n[0].apply("Softplus")};
  const Term scaled = n[0] * a.beta;
  return {choose(scaled > a.threshold, n[0], scaled.apply("Softplus") / a.beta)};
}

Terms softplus_grad(N& n) {
  const auto& a = n.attributes<SoftplusAttrs>();
  const Term scaled = n[0] * a.beta;
  return {choose(scaled > a.threshold, n[1], n[1] * (1 - exp_of(-scaled)))};
}

Terms celu(N& n) {
  const double alpha = n.attributes<EluAttrs>().alpha;
  if (n.in(0).dtype == DType::f32) return {with_alpha(n, "Celu", alpha)};
  return {choose(n[0] > 0, n[0], alpha * (exp_of(n[0] / alpha) - 1))};
}

Terms elu_grad(N& n) {
  const auto& a = n.attributes<EluGradAttrs>();
  return {choose(n[0] > 0, n[1] * a.scale, n[1] * (a.slope * (n[0] + a.alpha * a.scale)))};
}

// An infinite bound does not bind.
Terms clamp_grad(N& n) {
  const auto& a = n.attributes<ClampAttrs>();
  constexpr double inf = std::numeric_limits<double>::infinity();
  Term passed = n[1];
  if (a.max != inf) passed = choose(n[0] < a.max, passed, 0);
  if (a.min != -inf) passed = choose(n[0] > a.min, passed, 0);
  return {passed};
}

Terms shrunk(N& n, bool soft) {
  const double bound = n.attributes<ShrinkAttrs>().bound;
  return {n.add("Shrink", {n[0]}, n.in(0).dtype, {{"lambd", bound}, {"bias", soft ? bound : 0.0}})};
}

Terms along_axis(N& n, const char* op) {
  return {n.add(op, {n[0]}, n.in(0).dtype, {{"axis", n.attributes<AxisAttrs>().axis}})};
}

Terms softmax_grad(N& n) {
  const Integers axis = {n.attributes<AxisAttrs>().axis};
  return {n[0] * (n[1] - reduced("ReduceSum", n[0] * n[1], axis, true))};
}

Terms log_softmax_grad(N& n) {
  return {n[1] - exp_of(n[0]) * reduced("ReduceSum", n[1], {n.attributes<AxisAttrs>().axis}, true)};
}

// ---- losses of classes ----

// 1 where the class, in dimension `axis` of the result, is the label.
Term one_hot(const Term& labels, const Shape& shape, std::int64_t axis, std::int64_t classes, DType dtype) {
  N& n = labels.at();
  Integers column = list_of(shape), line(column.size() + 1, 1);
  column.insert(column.begin() + axis, 1);
  line[static_cast<std::size_t>(axis)] = classes;
  return is(reshaped(labels.as(DType::i64), column), reshaped(counted(n, classes), line)).as(dtype);
}

// The weight of each class in the loss of each label, [n, c, ...]; a label that is ignored counts nothing.
struct Targets {
  Term classes, labels;  // labels: [n, 1, ...]
};

Targets targets_of(const Term& labels, const Type& label_type, const Term& weights, std::int64_t classes, std::int64_t ignored,
                   double smoothing, DType dtype) {
  N& n = labels.at();
  Integers column = list_of(label_type.shape), line(column.size() + 1, 1);
  column.insert(column.begin() + 1, 1);
  line[1] = classes;
  const Term hot = one_hot(labels, label_type.shape, 1, classes, dtype);
  const Term counts = negated(is(reshaped(labels, column), static_cast<double>(ignored))).as(dtype);
  const Term weight = weights.name().empty() ? n.number(1, dtype) : reshaped(weights, line);
  const Term of_label = reduced("ReduceSum", hot * weight, {1}, true) * counts;
  if (smoothing == 0) return {hot * weight * counts, of_label};
  const Term share = hot * (1 - smoothing) + smoothing / static_cast<double>(classes);
  return {share * weight * counts, of_label};
}

Integers all_axes(const Shape& shape) {
  Integers axes;
  for (int i = 0; i < shape.rank; ++i) axes.push_back(i);
  return axes;
}

// The sum of losses of labels, their mean by weight, or the losses themselves.
Term reduced_loss(const Term& losses, const Targets& targets, const std::string& reduction, const Shape& labels) {
  if (reduction == "none") return losses;
  const Term sum = reduced("ReduceSum", losses, all_axes(labels), false);
  if (reduction == "sum") return sum;
  Integers axes = all_axes(labels);
  axes.push_back(labels.rank);
  return sum / reduced("ReduceSum", targets.labels, axes, false);
}

// Operands that may be absent, in the type in which the loss is computed.
Term cast_if_there(const Term& t, DType dtype) { return t.name().empty() ? t : t.as(dtype); }

Terms cross_entropy(N& n) {
  const auto& a = n.attributes<CrossEntropyAttrs>();
  const DType dtype = n.out().dtype;
  const Term x = n[0].as(dtype), weights = cast_if_there(n[2], dtype);
  if (a.label_smoothing == 0)
    return {n.add("SoftmaxCrossEntropyLoss", {x, n[1], weights}, dtype,
                  {{"ignore_index", a.ignore_index}, {"reduction", a.reduction.str()}})};
  const Targets targets = targets_of(n[1], n.in(1), weights, n.in(0).shape[1], a.ignore_index, a.label_smoothing, dtype);
  const Term logs = n.add("LogSoftmax", {x}, dtype, {{"axis", 1}});
  const Term losses = -reduced("ReduceSum", logs * targets.classes, {1}, false);
  return {reduced_loss(losses, targets, a.reduction.str(), n.in(1).shape)};
}

// The gradient of the loss of each label: [n, 1, ...], or of no dimension.
Term gradient_of_labels(const Term& dy, const Targets& targets, const std::string& reduction, const Shape& labels) {
  Integers axes = all_axes(labels), column = list_of(labels);
  axes.push_back(labels.rank);
  column.insert(column.begin() + 1, 1);
  if (reduction == "none") return reshaped(dy, column);
  return reduction == "sum" ? dy : dy / reduced("ReduceSum", targets.labels, axes, false);
}

Terms cross_entropy_grad(N& n) {
  const auto& a = n.attributes<CrossEntropyAttrs>();
  const DType dtype = kernels::is_half(n.in(0).dtype) ? DType::f32 : n.in(0).dtype;
  const Term weights = cast_if_there(n[3], dtype);
  const Targets targets = targets_of(n[1], n.in(1), weights, n.in(0).shape[1], a.ignore_index, a.label_smoothing, dtype);
  const Term scale = gradient_of_labels(n[2].as(dtype), targets, a.reduction.str(), n.in(1).shape);
  const Term likely = n.add("Softmax", {n[0].as(dtype)}, dtype, {{"axis", 1}});
  const Term all = a.label_smoothing == 0 ? targets.labels : reduced("ReduceSum", targets.classes, {1}, true);
  return {((likely * all - targets.classes) * scale).as(n.out().dtype)};
}

Terms nll_loss(N& n) {
  const auto& a = n.attributes<NllAttrs>();
  return {n.add("NegativeLogLikelihoodLoss", {n[0], n[1], n[2]}, n.in(0).dtype,
                {{"ignore_index", a.ignore_index}, {"reduction", a.reduction.str()}})};
}

Terms nll_loss_grad(N& n) {
  const auto& a = n.attributes<NllGradAttrs>();
  const Targets targets = targets_of(n[0], n.in(0), n[2], a.classes, a.ignore_index, 0, n.out().dtype);
  return {-(targets.classes * gradient_of_labels(n[1], targets, a.reduction.str(), n.in(0).shape))};
}

// ---- other losses ----

Terms huber(N& n) {
  const double delta = n.attributes<HuberAttrs>().delta;
  const Term far = magnitude_of(n[0]);
  return {choose(far <= delta, n[0] * n[0] * 0.5, delta * (far - delta / 2))};
}

Terms binary_cross_entropy(N& n) {
  const Term p = n[0], t = n[1];
  return {-(t * larger(log_of(p), -100) + (1 - t) * larger(log_of(1 - p), -100))};
}

Terms binary_cross_entropy_with_logits(N& n) {
  const Term x = n[0], t = n[1], positive = (-x).apply("Softplus"), negative = x.apply("Softplus");
  return {n.count() == 3 ? n[2] * t * positive + (1 - t) * negative : t * positive + (1 - t) * negative};
}

Terms kl_div(N& n) {
  const Term x = n[0], t = n[1];
  if (n.attributes<KlDivAttrs>().log_target) return {exp_of(t) * (t - x)};
  return {choose(is(t, 0), 0, t * (log_of(t) - x))};
}

}  // namespace

std::vector<ExportOp> activation_exports() {
  return {
      same("softsign", "Softsign"),
      same("mish", "Mish"),
      same("hardswish", "HardSwish"),
      same("selu", "Selu"),
      same("prelu", "PRelu"),
      composed("gelu", gelu),
      composed("gelu_grad", gelu_grad),
      composed("silu", [](N& n) { return Terms{n[0] * sigmoid_of(n[0])}; }),
      composed("silu_grad", silu_grad),
      composed("mish_grad", mish_grad),
      composed("hardswish_grad", hardswish_grad),
      composed("softplus", softplus),
      composed("softplus_grad", softplus_grad),
      composed("logsigmoid", [](N& n) { return Terms{-(-n[0]).apply("Softplus")}; }),
      composed("tanhshrink", [](N& n) { return Terms{n[0] - tanh_of(n[0])}; }),
      composed("elu", [](N& n) { return Terms{with_alpha(n, "Elu", n.attributes<EluAttrs>().alpha)}; }),
      composed("celu", celu),
      composed("elu_grad", elu_grad),
      composed("clamp_grad", clamp_grad),
      composed("leaky_relu", [](N& n) { return Terms{with_alpha(n, "LeakyRelu", n.attributes<LeakyReluAttrs>().slope)}; }),
      composed("hardsigmoid",
               [](N& n) {
                 return Terms{n.add("HardSigmoid", {n[0]}, n.in(0).dtype, {{"alpha", 1.0 / 6}, {"beta", 0.5}})};
               }),
      composed("hardshrink", [](N& n) { return shrunk(n, false); }),
      composed("softshrink", [](N& n) { return shrunk(n, true); }),
      composed("threshold",
               [](N& n) {
                 const auto& a = n.attributes<ThresholdAttrs>();
                 return Terms{choose(n[0] > a.threshold, n[0], a.value)};
               }),
      composed("softmax", [](N& n) { return along_axis(n, "Softmax"); }),
      composed("log_softmax", [](N& n) { return along_axis(n, "LogSoftmax"); }),
      composed("softmax_grad", softmax_grad),
      composed("log_softmax_grad", log_softmax_grad),
      composed("one_hot",
               [](N& n) {
                 const auto& a = n.attributes<OneHotAttrs>();
                 return Terms{one_hot(n[0], n.in(0).shape, n.in(0).shape.rank, a.classes, a.dtype)};
               }),
      composed("cross_entropy", cross_entropy),
      composed("cross_entropy_grad", cross_entropy_grad),
      composed("nll_loss", nll_loss),
      composed("nll_loss_grad", nll_loss_grad),
      composed("huber", huber),
      composed("binary_cross_entropy", binary_cross_entropy),
      composed("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
      composed("kl_div", kl_div),
  };
}

}  // namespace tapedeck::onnx
