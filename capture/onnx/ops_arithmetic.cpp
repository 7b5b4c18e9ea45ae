// Arithmetic, comparisons, logic and functions of single elements.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <cmath>
#include <limits>

namespace tapedeck::onnx {

namespace {

template <Tensor (*f)(const Arg&, const Arg&)>
Tensors binary(NodeCall& n) {
  return {f(n.arg(0), n[1])};
}

// Max, Min and Sum take any number of operands.
template <Tensor (*f)(const Arg&, const Arg&)>
Tensors folded(NodeCall& n) {
  Tensor result = n[0];
  for (std::size_t i = 1; i < n.count(); ++i) result = f(n.arg(result), n[i]);
  return {result};
}

Tensors power(NodeCall& n) {
  const DType dtype = n[0].dtype();
  if (n.is_known(1) && n[1].numel() == 1 && n[1].rank() <= n[0].rank() && n.real(1) == 2) return {square(n.arg(0))};
  const Tensor result = pow(n.arg(0), n[1]);
  return {result.dtype() == dtype ? result : cast(n.arg(result), dtype)};
}

// The remainder has the sign of the divisor, or with `fmod` that of the dividend.
Tensors modulo(NodeCall& n) { return {n.flag("fmod") ? fmod(n.arg(0), n[1]) : remainder(n.arg(0), n[1])}; }

Tensors clip(NodeCall& n) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (n.opset() < 11) return {clamp(n.arg(0), n.real("min", -kNone), n.real("max", kNone))};
  const bool known = (!n.has(1) || n.is_known(1)) && (!n.has(2) || n.is_known(2));
  if (known && is_floating(n[0].dtype())) return {clamp(n.arg(0), n.has(1) ? n.real(1) : -kNone, n.has(2) ? n.real(2) : kNone)};
  Tensor result = n[0];
  if (n.has(1)) result = maximum(n.arg(result), n[1]);
  if (n.has(2)) result = minimum(n.arg(result), n[2]);
  return {result};
}

Tensors mean_of_operands(NodeCall& n) { return {div(n.arg(folded<add>(n)[0]), static_cast<double>(n.count()))}; }

Tensors is_infinite(NodeCall& n) {
  const bool up = n.flag("detect_positive", true), down = n.flag("detect_negative", true);
  const double infinity = std::numeric_limits<double>::infinity();
  if (up && down) return {isinf(n.arg(0))};
  if (up) return {equal(n.arg(0), infinity)};
  if (down) return {equal(n.arg(0), -infinity)};
  return {full(n[0].shape(), 0, DType::boolean, n.site())};
}

Tensors shift_bits(NodeCall& n) {
  const std::string direction = n.text("direction", "");
  n.require(direction == "LEFT" || direction == "RIGHT", "the attribute 'direction' must be LEFT or RIGHT");
  return {direction == "LEFT" ? left_shift(n.arg(0), n[1]) : right_shift(n.arg(0), n[1])};
}

Tensors cast_to(NodeCall& n, DType dtype) { return {n[0].dtype() == dtype ? alias(n.arg(0)) : cast(n.arg(0), dtype)}; }

Tensors matrix_product(NodeCall& n) { return {matmul(n.arg(0), n[1])}; }

Tensors gemm(NodeCall& n) {
  n.require(n[0].rank() == 2 && n[1].rank() == 2, "both factors must have two dimensions");
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const Tensor a = n.flag("transA") ? transpose_last(n.arg(0)) : n[0];
  const Tensor b = n.flag("transB") ? transpose_last(n.arg(1)) : n[1];
  if (alpha == 1 && beta == 1 && n.has(2) && n[2].rank() == 1 && n[2].size(0) == b.size(1)) return {linear(n.arg(a), b, n[2])};
  Tensor product = matmul(n.arg(a), b);
  if (alpha != 1) product = mul(n.arg(product), alpha);
  if (!n.has(2) || beta == 0) return {product};
  return {add(n.arg(product), beta == 1 ? n[2] : mul(n.arg(2), beta))};
}

Tensors sum_of_products(NodeCall& n) { return {einsum(n.text("equation", ""), n.all(), n.site())}; }

}  // namespace

std::vector<OnnxOp> arithmetic_ops() {
  return {
      {"Add", 7, "", binary<add>},
      {"Sub", 7, "", binary<sub>},
      {"Mul", 7, "", binary<mul>},
      {"Div", 7, "", binary<div>},
      {"Pow", 7, "", power},
      {"Mod", 10, "fmod", modulo, 28},
      {"Max", 6, "", folded<maximum>},
      {"Min", 6, "", folded<minimum>},
      {"Sum", 6, "", folded<add>},
      {"Mean", 6, "", mean_of_operands},
      {"Neg", 6, "", unary<neg>},
      {"Abs", 6, "", unary<abs>},
      {"Sign", 9, "", unary<sign>},
      {"Reciprocal", 6, "", unary<reciprocal>},
      {"Sqrt", 6, "", unary<sqrt>},
      {"Exp", 6, "", unary<exp>},
      {"Log", 6, "", unary<log>},
      {"Sin", 7, "", unary<sin>},
      {"Cos", 7, "", unary<cos>},
      {"Tan", 7, "", unary<tan>},
      {"Asin", 7, "", unary<asin>},
      {"Acos", 7, "", unary<acos>},
      {"Atan", 7, "", unary<atan>},
      {"Sinh", 9, "", unary<sinh>},
      {"Cosh", 9, "", unary<cosh>},
      {"Asinh", 9, "", unary<asinh>},
      {"Acosh", 9, "", unary<acosh>},
      {"Atanh", 9, "", unary<atanh>},
      {"Erf", 9, "", unary<erf>},
      {"Floor", 6, "", unary<floor>},
      {"Ceil", 6, "", unary<ceil>},
      {"Round", 11, "", unary<round>},
      {"Clip", 6, "min max", clip},
      {"IsNaN", 9, "", unary<isnan>},
      {"IsInf", 10, "detect_negative detect_positive", is_infinite},
      {"Equal", 7, "", binary<equal>},
      {"Less", 7, "", binary<less>},
      {"LessOrEqual", 12, "", binary<less_equal>},
      {"Greater", 7, "", binary<greater>},
      {"GreaterOrEqual", 12, "", binary<greater_equal>},
      {"And", 7, "", binary<logical_and>},
      {"Or", 7, "", binary<logical_or>},
      {"Xor", 7, "", binary<logical_xor>},
      {"Not", 1, "", unary<logical_not>},
      {"BitwiseAnd", 18, "", binary<bitwise_and>},
      {"BitwiseOr", 18, "", binary<bitwise_or>},
      {"BitwiseXor", 18, "", binary<bitwise_xor>},
      {"BitwiseNot", 18, "", unary<bitwise_not>},
      {"BitShift", 11, "direction", shift_bits, 28},
      {"Where", 9, "", [](NodeCall& n) { return Tensors{where(n.arg(0), n[1], n[2])}; }},
      {"Cast", 6, "to saturate round_mode", [](NodeCall& n) { return cast_to(n, n.dtype(n.integer("to"))); }},
      {"CastLike", 15, "saturate round_mode", [](NodeCall& n) { return cast_to(n, n[1].dtype()); }},
      {"MatMul", 1, "", matrix_product},
      {"Gemm", 7, "alpha beta transA transB", gemm},
      {"Einsum", 12, "equation", sum_of_products, 28},
  };
}

}  // namespace tapedeck::onnx
