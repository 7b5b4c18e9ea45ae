// Arithmetic, comparisons, logic and functions of single elements.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/functions.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace tapedeck::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Terms itself(NodeExport& n) { return {n.add("Identity", {n[0]}, n.in(0).dtype)}; }

// ONNX rounds floating numbers only. Whole numbers stay.
Terms rounded(NodeExport& n, const char* op) { return {n[0].apply(is_floating(n.in(0).dtype) ? op : "Identity")}; }

Term whole_part(const Term& x) { return choose(x < 0, x.apply("Ceil"), x.apply("Floor")); }

Terms truncated(NodeExport& n) { return is_floating(n.in(0).dtype) ? Terms{whole_part(n[0])} : itself(n); }

// 2 sinh(x / 2) exp(x / 2) = exp(x) - 1, exact near 0.
Term exp_less_one(const Term& x) { return (x * 0.5).apply("Sinh") * exp_of(x * 0.5) * 2; }

// 2 atanh(x / (x + 2)) = log(1 + x), exact near 0.
Term log_of_more(const Term& x) { return choose(magnitude_of(x) < 0.5, (x / (x + 2)).apply("Atanh") * 2, log_of(x + 1)); }

Term angle(const Term& a, const Term& b) {
  const Term turn = choose(a < 0, a.like(-std::numbers::pi), a.like(std::numbers::pi));
  const Term whole = (a / b).apply("Atan") + choose(b < 0, turn, 0);
  return choose(both(is(a, 0), is(b, 0)), a * 0, whole);
}

Term hypotenuse(const Term& a, const Term& b) {
  const Term most = larger(magnitude_of(a), magnitude_of(b));
  const Term x = a / most, y = b / most;
  return choose(either(is(most, 0), is(most, kInfinity)), most, most * root_of(x * x + y * y));
}

Term with_sign(const Term& a, const Term& b) {
  const Term minus = either(b < 0, b.apply("Reciprocal") < 0);  // -0 is a minus, too
  return choose(minus, -magnitude_of(a), magnitude_of(a));
}

Term between(const Term& a, const Term& b, const Term& weight) {
  const Term far = b - a;
  return choose(weight < 0.5, a + weight * far, b - far * (1 - weight));
}

Term always(const Term& x, bool truth) {
  const Term same = is(x, x);
  return truth ? same : negated(same);
}
Term not_a_number(const Term& x) {
  return is_floating(x.dtype()) ? x.at().add("IsNaN", {x}, DType::boolean) : always(x, false);
}
Term infinite(const Term& x) { return is_floating(x.dtype()) ? x.at().add("IsInf", {x}, DType::boolean) : always(x, false); }

Terms finite_numbers(NodeExport& n) {
  const auto& a = n.attributes<NanToNumAttrs>();
  const Term x = n[0], no_nan = choose(not_a_number(x), a.nan, x), no_large = choose(is(x, kInfinity), a.posinf, no_nan);
  return {choose(is(x, -kInfinity), a.neginf, no_large)};
}

Terms close(NodeExport& n) {
  const auto& attributes = n.attributes<IsCloseAttrs>();
  const DType dtype = is_floating(n.in(0).dtype) ? n.in(0).dtype : DType::f64;
  const Term a = n[0].as(dtype), b = n[1].as(dtype);
  const Term near = magnitude_of(a - b) <= attributes.atol + attributes.rtol * magnitude_of(b);
  Term result = either(both(near, negated(infinite(b))), is(a, b));
  if (attributes.equal_nan) result = either(result, both(not_a_number(a), not_a_number(b)));
  return {result};
}

Term c_remainder(const Term& a, const Term& b) { return a.at().add("Mod", {a, b}, a.dtype(), {{"fmod", 1}}); }

// With the sign of the divisor.
Term remainder_of(const Term& a, const Term& b) {
  if (!is_floating(a.dtype())) return binary("Mod", a, b);
  const Term rest = c_remainder(a, b);
  const Term other_side = both(negated(is(rest, 0)), comparison("Xor", rest < 0, b < 0));
  return choose(other_side, rest + b, rest);
}

Terms floor_divided(NodeExport& n) {
  const Term a = n[0], b = n[1];
  if (!is_floating(a.dtype())) return {(a - remainder_of(a, b)) / b};
  return {((a - remainder_of(a, b)) / b).apply("Round")};
}

Terms clamped(NodeExport& n) {
  const auto& a = n.attributes<ClampAttrs>();
  Terms operands = {n[0], a.min == -kInfinity ? Term() : n[0].like(a.min)};
  if (a.max != kInfinity) operands.push_back(n[0].like(a.max));
  return {n.add("Clip", operands, n.in(0).dtype)};
}

// On truth values the bitwise ops are those of logic.
Terms bitwise(NodeExport& n, const char* bits, const char* logic) {
  const Terms operands = n.count() == 1 ? Terms{n[0]} : Terms{n[0], n[1]};
  return {n.add(n.in(0).dtype == DType::boolean ? logic : bits, operands, n.in(0).dtype)};
}

Terms shifted(NodeExport& n, const char* direction) {
  if (n.in(0).dtype != DType::u8) n.refuse("ONNX shifts unsigned integers only");
  return {n.add("BitShift", {n[0], n[1]}, n.in(0).dtype, {{"direction", std::string(direction)}})};
}

Terms added(NodeExport& n) {
  Terms all;
  for (int i = 0; i < n.count(); ++i) all.push_back(n[i]);
  if (all.size() == 1) return itself(n);
  if (is_floating(n.in(0).dtype)) return {n.add("Sum", all, n.in(0).dtype)};
  Term sum = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  return {sum};
}

}  // namespace

std::vector<ExportOp> element_exports() {
  using N = NodeExport;
  return {
      same("add", "Add"),
      same("sub", "Sub"),
      same("mul", "Mul"),
      same("div", "Div"),
      same("pow", "Pow"),
      same("maximum", "Max"),
      same("minimum", "Min"),
      same("neg", "Neg"),
      same("abs", "Abs"),
      same("sign", "Sign"),
      same("sqrt", "Sqrt"),
      same("reciprocal", "Reciprocal"),
      same("exp", "Exp"),
      same("log", "Log"),
      same("sin", "Sin"),
      same("cos", "Cos"),
      same("tan", "Tan"),
      same("asin", "Asin"),
      same("acos", "Acos"),
      same("atan", "Atan"),
      same("sinh", "Sinh"),
      same("cosh", "Cosh"),
      same("tanh", "Tanh"),
      same("asinh", "Asinh"),
      same("acosh", "Acosh"),
      same("atanh", "Atanh"),
      same("erf", "Erf"),
      same("sigmoid", "Sigmoid"),
      same("relu", "Relu"),
      same("equal", "Equal"),
      same("less", "Less"),
      same("less_equal", "LessOrEqual"),
      same("greater", "Greater"),
      same("greater_equal", "GreaterOrEqual"),
      same("logical_and", "And"),
      same("logical_or", "Or"),
      same("logical_xor", "Xor"),
      same("logical_not", "Not"),
      same("where", "Where"),
      composed("not_equal", [](N& n) { return Terms{negated(is(n[0], n[1]))}; }),
      composed("square", [](N& n) { return Terms{power(n[0], 2)}; }),
      composed("rsqrt", [](N& n) { return Terms{root_of(n[0]).apply("Reciprocal")}; }),
      composed("relu_grad", [](N& n) { return Terms{choose(n[0] > 0, n[1], 0)}; }),
      composed("tanh_grad", [](N& n) { return Terms{n[1] * (1 - n[0] * n[0])}; }),
      composed("sigmoid_grad", [](N& n) { return Terms{n[1] * n[0] * (1 - n[0])}; }),
      composed("cast", [](N& n) { return n.in(0).dtype == n.out().dtype ? itself(n) : Terms{n[0].as(n.out().dtype)}; }),
      composed("copy", itself),
      composed("alias", itself),
      composed("stop_gradient", itself),
      composed("to_device", itself),
      composed("own_gradient", itself),
      composed("floor", [](N& n) { return rounded(n, "Floor"); }),
      composed("ceil", [](N& n) { return rounded(n, "Ceil"); }),
      composed("round", [](N& n) { return rounded(n, "Round"); }),
      composed("trunc", truncated),
      composed("frac", [](N& n) { return Terms{n[0] - whole_part(n[0])}; }),
      composed("exp2", [](N& n) { return Terms{power(2.0, n[0])}; }),
      composed("expm1", [](N& n) { return Terms{exp_less_one(n[0])}; }),
      composed("log1p", [](N& n) { return Terms{log_of_more(n[0])}; }),
      composed("log2", [](N& n) { return Terms{log_of(n[0]) * (1 / std::numbers::ln2)}; }),
      composed("log10", [](N& n) { return Terms{log_of(n[0]) * (1 / std::numbers::ln10)}; }),
      composed("erfc", [](N& n) { return Terms{1 - n[0].apply("Erf")}; }),
      composed("atan2", [](N& n) { return Terms{angle(n[0], n[1])}; }),
      composed("hypot", [](N& n) { return Terms{hypotenuse(n[0], n[1])}; }),
      composed("logaddexp", [](N& n) { return Terms{larger(n[0], n[1]) + (-magnitude_of(n[0] - n[1])).apply("Softplus")}; }),
      composed("copysign", [](N& n) { return Terms{with_sign(n[0], n[1])}; }),
      composed("lerp", [](N& n) { return Terms{between(n[0], n[1], n[2])}; }),
      composed("isnan", [](N& n) { return Terms{not_a_number(n[0])}; }),
      composed("isinf", [](N& n) { return Terms{infinite(n[0])}; }),
      composed("isfinite", [](N& n) { return Terms{negated(either(not_a_number(n[0]), infinite(n[0])))}; }),
      composed("isclose", close),
      composed("nan_to_num", finite_numbers),
      composed("clamp", clamped),
      composed("fmod", [](N& n) { return Terms{c_remainder(n[0], n[1])}; }),
      composed("remainder", [](N& n) { return Terms{remainder_of(n[0], n[1])}; }),
      composed("floor_divide", floor_divided),
      composed("bitwise_and", [](N& n) { return bitwise(n, "BitwiseAnd", "And"); }),
      composed("bitwise_or", [](N& n) { return bitwise(n, "BitwiseOr", "Or"); }),
      composed("bitwise_xor", [](N& n) { return bitwise(n, "BitwiseXor", "Xor"); }),
      composed("bitwise_not", [](N& n) { return bitwise(n, "BitwiseNot", "Not"); }),
      composed("left_shift", [](N& n) { return shifted(n, "LEFT"); }),
      composed("right_shift", [](N& n) { return shifted(n, "RIGHT"); }),
      composed("add_n", added),
      composed("addcmul", [](N& n) { return Terms{n[0] + n[1] * n[2]}; }),
      composed("addmm", [](N& n) { return Terms{n[0] + product(n[1], n[2])}; }),
  };
}

}  // namespace tapedeck::onnx
