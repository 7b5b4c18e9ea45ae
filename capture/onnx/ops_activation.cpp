// Activations, softmax, dropout and losses.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <utility>

namespace tapedeck::onnx {

namespace {

Tensors scaled_elu(NodeCall& n) {
  constexpr double kAlpha = 1.67326319217681884765625, kGamma = 1.05070102214813232421875;
  const double alpha = n.real("alpha", kAlpha), gamma = n.real("gamma", kGamma);
  if (alpha == kAlpha && gamma == kGamma) return {selu(n.arg(0))};
  return {mul(n.arg(elu(n.arg(0), alpha)), gamma)};
}

Tensors hard_sigmoid(NodeCall& n) {
  const Tensor line = add(n.arg(mul(n.arg(0), n.real("alpha", 0.2F))), n.real("beta", 0.5));
  return {clamp(n.arg(line), 0.0, 1.0)};
}

// The slope broadcasts to x from the right.
Tensors parametric_relu(NodeCall& n) { return {where(greater_equal(n.arg(0), 0), n[0], mul(n.arg(0), n[1]))}; }

Tensors shrink(NodeCall& n) {
  const double bound = n.real("lambd", 0.5), bias = n.real("bias", 0);
  const Tensor low = less(n.arg(0), -bound), high = greater(n.arg(0), bound);
  return {where(low, add(n.arg(0), bias), where(high, sub(n.arg(0), bias), zeros_like(n.arg(0))))};
}

Tensors swish(NodeCall& n) {
  const double alpha = n.real("alpha", 1);
  if (alpha == 1) return {silu(n.arg(0))};
  return {mul(n.arg(0), sigmoid(mul(n.arg(0), alpha)))};
}

// Before opset 13 the axes from `axis` on are one.
template <Tensor (*f)(const Arg&, std::int64_t)>
Tensors along_axis(NodeCall& n) {
  const Tensor& x = n[0];
  const std::int64_t axis = n.axis(n.integer("axis", n.opset() < 13 ? 1 : -1), x.rank());
  if (n.opset() >= 13 || axis == x.rank() - 1) return {f(n.arg(0), axis)};
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < axis; ++i) rows *= x.size(static_cast<int>(i));
  return {reshape(f(n.arg(reshape(n.arg(0), {rows, rows == 0 ? 0 : x.numel() / rows})), 1), x.shape())};
}

Tensor hard_maximum(const Arg& x, std::int64_t axis) {
  const Tensor& t = x.tensor();
  const Tensor one = one_hot(argmax(x, axis), t.size(static_cast<int>(axis)), t.dtype());
  return movedim(one, -1, axis);
}

Tensors drop(NodeCall& n) {
  const double ratio = n.opset() < 12 ? n.real("ratio", 0.5) : n.has(1) ? n.real(1) : 0.5;
  n.require(ratio >= 0 && ratio < 1, "the ratio must be at least 0 and less than 1");
  const bool training = n.opset() >= 12 && n.has(2) && n.integer(2) != 0;
  if ((!training && !n.trains()) || ratio == 0) {
    return {alias(n.arg(0)), n.wants(1) ? full(n[0].shape(), 1, DType::boolean, n.site()) : Tensor()};
  }
  if (!n.wants(1)) return {dropout(n.arg(0), ratio)};
  const Tensor kept = less(uniform(n[0].shape(), 0, 1, DType::f32, n.site()), 1 - ratio);
  return {mul(n.arg(0), mul(cast(kept, n[0].dtype()), 1 / (1 - ratio))), kept};
}

NllOptions loss_options(const NodeCall& n) {
  NllOptions options;
  options.weights = n.or_none(2);
  options.ignore_index = n.integer("ignore_index", -100);
  options.reduction = n.text("reduction", "mean");
  return options;
}

Tensors negative_log_likelihood(NodeCall& n) { return {nll_loss(n.arg(0), n[1], loss_options(n))}; }

Tensors softmax_cross_entropy(NodeCall& n) {
  const NllOptions o = loss_options(n);
  Tensors results = {cross_entropy(n.arg(0), n[1], {o.weights, o.ignore_index, 0, o.reduction})};
  if (n.wants(1)) results.push_back(log_softmax(n.arg(0), 1));
  return results;
}

}  // namespace

std::vector<OnnxOp> activation_ops() {
  return {
      {"Relu", 6, "", unary<relu>},
      {"Sigmoid", 6, "", unary<sigmoid>},
      {"Tanh", 6, "", unary<tanh>},
      {"Softplus", 1, "", [](NodeCall& n) { return Tensors{softplus(n.arg(0))}; }},
      {"Softsign", 1, "", unary<softsign>},
      {"Mish", 18, "", unary<mish>},
      {"HardSwish", 14, "", unary<hardswish>},
      {"HardSigmoid", 6, "alpha beta", hard_sigmoid},
      {"Elu", 6, "alpha", [](NodeCall& n) { return Tensors{elu(n.arg(0), n.real("alpha", 1))}; }},
      {"Celu", 12, "alpha", [](NodeCall& n) { return Tensors{celu(n.arg(0), n.real("alpha", 1))}; }, 28},
      {"Selu", 6, "alpha gamma", scaled_elu},
      {"LeakyRelu", 6, "alpha", [](NodeCall& n) { return Tensors{leaky_relu(n.arg(0), n.real("alpha", 0.01F))}; }},
      {"ThresholdedRelu", 10, "alpha", [](NodeCall& n) { return Tensors{threshold(n.arg(0), n.real("alpha", 1), 0)}; }},
      {"PRelu", 7, "", parametric_relu},
      {"Shrink", 9, "bias lambd", shrink},
      {"Gelu", 20, "approximate", [](NodeCall& n) { return Tensors{gelu(n.arg(0), n.text("approximate", "none"))}; }},
      {"Swish", 24, "alpha", swish},
      {"Softmax", 1, "axis", along_axis<softmax>},
      {"LogSoftmax", 1, "axis", along_axis<log_softmax>},
      {"Hardmax", 1, "axis", along_axis<hard_maximum>},
      {"Dropout", 7, "ratio seed", drop, 0, true},
      {"NegativeLogLikelihoodLoss", 12, "ignore_index reduction", negative_log_likelihood},
      {"SoftmaxCrossEntropyLoss", 12, "ignore_index reduction", softmax_cross_entropy},
  };
}

}  // namespace tapedeck::onnx
