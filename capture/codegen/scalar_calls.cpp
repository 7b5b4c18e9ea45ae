// One line for each elementwise op: its functor, and the header that has it. Ops with attributes have a function that writes
// the functor with its members.
//
//     {"tanh", {"Tanh"}}                          Tanh{}(v0)
//     {"clamp", {nullptr, kFunctions, clamp}}     Clamp<float>{low, high}(v0)
#include <tapedeck/capture/codegen/scalar_calls.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/attrs/activation.h>
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/scalar.h>

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck::codegen {

const char* register_type(DType dtype) {
  constexpr const char* names[kDTypeCount] = {"float",        "double",       "F16",          "Bf16",
                                              "std::int32_t", "std::int64_t", "std::uint8_t", "std::uint8_t"};
  return names[static_cast<int>(dtype)];
}

namespace {

// ---- numbers, written so that the compiler reads back the same bits ----

std::string f32_text(float x) { return fmt::format("bits_float(0x{:08x}u)", kernels::float_bits(x)); }
std::string f64_text(double x) { return fmt::format("bits_double(0x{:016x}ull)", kernels::double_bits(x)); }

// The attribute as the CPU kernels convert it to the type in which they compute.
std::string number(double x, DType dtype) { return dtype == DType::f64 ? f64_text(x) : f32_text(static_cast<float>(x)); }

template <class T>
std::string clamp_of_integers(const ClampAttrs& a, DType dtype) {
  const T low = kernels::Cast<T>{}(a.min), high = kernels::Cast<T>{}(a.max);
  const auto text = [&](T x) {
    return fmt::format("static_cast<{}>(0x{:x}ull)", register_type(dtype), static_cast<std::uint64_t>(x));
  };
  return fmt::format("Clamp<{}>{{{}, {}}}", register_type(dtype), text(low < high ? low : high), text(high));
}

// ---- functors with attributes; `t` is the type in which the op computes ----

template <class A>
const A& as(const void* attrs) {
  return *static_cast<const A*>(attrs);
}

std::string clamp(const void* attrs, DType t) {
  const auto& a = as<ClampAttrs>(attrs);
  if (t == DType::i32) return clamp_of_integers<std::int32_t>(a, t);
  if (t == DType::i64) return clamp_of_integers<std::int64_t>(a, t);
  if (t == DType::u8) return clamp_of_integers<std::uint8_t>(a, t);
  if (t == DType::f64) return fmt::format("Clamp<double>{{{}, {}}}", f64_text(a.min < a.max ? a.min : a.max), f64_text(a.max));
  const auto low = static_cast<float>(a.min), high = static_cast<float>(a.max);
  return fmt::format("Clamp<float>{{{}, {}}}", f32_text(low < high ? low : high), f32_text(high));
}

std::string nan_to_num(const void* attrs, DType t) {
  const auto& a = as<NanToNumAttrs>(attrs);
  return fmt::format("NanToNum<{}>{{{}, {}, {}}}", register_type(t), number(a.nan, t), number(a.posinf, t),
                     number(a.neginf, t));
}

std::string isclose(const void* attrs, DType) {
  const auto& a = as<IsCloseAttrs>(attrs);
  return fmt::format("IsClose{{{}, {}, {}}}", f64_text(a.rtol), f64_text(a.atol), a.equal_nan);
}

std::string polygamma(const void* attrs, DType) {
  return fmt::format("Polygamma{{{}}}", static_cast<int>(as<PolygammaAttrs>(attrs).n));
}

bool by_tanh(const void* attrs) { return as<GeluAttrs>(attrs).approximate.view() == "tanh"; }
std::string gelu(const void* attrs, DType) { return by_tanh(attrs) ? "GeluTanh{}" : "Gelu{}"; }
std::string gelu_grad(const void* attrs, DType) { return by_tanh(attrs) ? "GeluTanhGrad{}" : "GeluGrad{}"; }

std::string softplus(const void* attrs, DType t) {
  const auto& a = as<SoftplusAttrs>(attrs);
  return fmt::format("Softplus<{}>{{{}, {}, {}}}", register_type(t), number(a.beta, t), number(1 / a.beta, t),
                     number(a.threshold, t));
}
std::string softplus_grad(const void* attrs, DType t) {
  const auto& a = as<SoftplusAttrs>(attrs);
  return fmt::format("SoftplusGrad<{}>{{{}, {}}}", register_type(t), number(a.beta, t), number(a.threshold, t));
}

std::string elu_of(DType t, double alpha, double scale, double slope) {
  return fmt::format("Elu<{}>{{{}, {}, {}}}", register_type(t), number(alpha, t), number(scale, t), number(slope, t));
}
std::string elu(const void* attrs, DType t) { return elu_of(t, as<EluAttrs>(attrs).alpha, 1, 1); }
std::string selu(const void*, DType t) { return elu_of(t, kSeluAlpha, kSeluScale, 1); }
std::string celu(const void* attrs, DType t) {
  const double alpha = as<EluAttrs>(attrs).alpha;
  return elu_of(t, alpha, 1, 1 / alpha);
}
std::string elu_grad(const void* attrs, DType t) {
  const auto& a = as<EluGradAttrs>(attrs);
  const std::string scale = number(a.scale, t);
  return fmt::format("EluGrad<{}>{{{} * {}, {}, {}}}", register_type(t), number(a.alpha, t), scale, scale, number(a.slope, t));
}

std::string clamp_grad(const void* attrs, DType t) {
  const auto& a = as<ClampAttrs>(attrs);
  return fmt::format("ClampGrad<{}>{{{}, {}}}", register_type(t), number(a.min, t), number(a.max, t));
}

std::string leaky_relu(const void* attrs, DType t) {
  return fmt::format("LeakyRelu<{}>{{{}}}", register_type(t), number(as<LeakyReluAttrs>(attrs).slope, t));
}
std::string hardshrink(const void* attrs, DType t) {
  return fmt::format("HardShrink<{}>{{{}}}", register_type(t), number(as<ShrinkAttrs>(attrs).bound, t));
}
std::string softshrink(const void* attrs, DType t) {
  return fmt::format("SoftShrink<{}>{{{}}}", register_type(t), number(as<ShrinkAttrs>(attrs).bound, t));
}
std::string threshold(const void* attrs, DType t) {
  const auto& a = as<ThresholdAttrs>(attrs);
  return fmt::format("Threshold<{}>{{{}, {}}}", register_type(t), number(a.threshold, t), number(a.value, t));
}

std::string huber(const void* attrs, DType) { return fmt::format("Huber{{{}}}", f64_text(as<HuberAttrs>(attrs).delta)); }
std::string kl_div(const void* attrs, DType) { return as<KlDivAttrs>(attrs).log_target ? "KlDivLogTarget{}" : "KlDiv{}"; }

// Booleans are combined by logic, integers bit by bit.
std::string bitwise_and(const void*, DType t) { return t == DType::boolean ? "LogicalAnd{}" : "BitwiseAnd{}"; }
std::string bitwise_or(const void*, DType t) { return t == DType::boolean ? "LogicalOr{}" : "BitwiseOr{}"; }
std::string bitwise_xor(const void*, DType t) { return t == DType::boolean ? "LogicalXor{}" : "BitwiseXor{}"; }
std::string bitwise_not(const void*, DType t) { return t == DType::boolean ? "LogicalNot{}" : "BitwiseNot{}"; }

// ---- the table ----

struct Functor {
  const char* name;  // of a functor without members; null if `with` writes it
  Headers headers = 0;
  std::string (*with)(const void* attrs, DType computed) = nullptr;
};

const std::unordered_map<std::string_view, Functor>& functors() {
  static const std::unordered_map<std::string_view, Functor> table = {
      // scalar.h
      {"add", {"Add"}},
      {"sub", {"Sub"}},
      {"mul", {"Mul"}},
      {"div", {"Div"}},
      {"maximum", {"Maximum"}},
      {"minimum", {"Minimum"}},
      {"pow", {"Pow"}},
      {"neg", {"Neg"}},
      {"abs", {"Abs"}},
      {"sign", {"Sign"}},
      {"relu", {"Relu"}},
      {"square", {"Square"}},
      {"exp", {"Exp"}},
      {"log", {"Log"}},
      {"tanh", {"Tanh"}},
      {"sigmoid", {"Sigmoid"}},
      {"sqrt", {"Sqrt"}},
      {"rsqrt", {"Rsqrt"}},
      {"relu_grad", {"ReluGrad"}},
      {"tanh_grad", {"TanhGrad"}},
      {"sigmoid_grad", {"SigmoidGrad"}},
      {"equal", {"Equal"}},
      {"not_equal", {"NotEqual"}},
      {"less", {"Less"}},
      {"less_equal", {"LessEqual"}},
      {"greater", {"Greater"}},
      {"greater_equal", {"GreaterEqual"}},
      {"logical_and", {"LogicalAnd"}},
      {"logical_or", {"LogicalOr"}},
      {"logical_not", {"LogicalNot"}},
      {"where", {"Where"}},
      // scalar_functions.h
      {"sin", {"Sin", kFunctions}},
      {"cos", {"Cos", kFunctions}},
      {"tan", {"Tan", kFunctions}},
      {"exp2", {"Exp2", kFunctions}},
      {"expm1", {"Expm1", kFunctions}},
      {"log2", {"Log2", kFunctions}},
      {"log10", {"Log10", kFunctions}},
      {"log1p", {"Log1p", kFunctions}},
      {"asin", {"Asin", kFunctions}},
      {"acos", {"Acos", kFunctions}},
      {"atan", {"Atan", kFunctions}},
      {"sinh", {"Sinh", kFunctions}},
      {"cosh", {"Cosh", kFunctions}},
      {"asinh", {"Asinh", kFunctions}},
      {"acosh", {"Acosh", kFunctions}},
      {"atanh", {"Atanh", kFunctions}},
      {"erf", {"Erf", kFunctions}},
      {"erfc", {"Erfc", kFunctions}},
      {"erfinv", {"Erfinv", kFunctions}},
      {"lgamma", {"Lgamma", kFunctions}},
      {"digamma", {"Digamma", kFunctions}},
      {"polygamma", {nullptr, kFunctions, polygamma}},
      {"reciprocal", {"Reciprocal", kFunctions}},
      {"frac", {"Frac", kFunctions}},
      {"floor", {"Floor", kFunctions}},
      {"ceil", {"Ceil", kFunctions}},
      {"round", {"Round", kFunctions}},
      {"trunc", {"Trunc", kFunctions}},
      {"isnan", {"IsNan", kFunctions}},
      {"isinf", {"IsInf", kFunctions}},
      {"isfinite", {"IsFinite", kFunctions}},
      {"clamp", {nullptr, kFunctions, clamp}},
      {"nan_to_num", {nullptr, kFunctions, nan_to_num}},
      {"remainder", {"Remainder", kFunctions}},
      {"fmod", {"Fmod", kFunctions}},
      {"floor_divide", {"FloorDivide", kFunctions}},
      {"atan2", {"Atan2", kFunctions}},
      {"hypot", {"Hypot", kFunctions}},
      {"logaddexp", {"LogAddExp", kFunctions}},
      {"copysign", {"CopySign", kFunctions}},
      {"lerp", {"Lerp", kFunctions}},
      {"isclose", {nullptr, kFunctions, isclose}},
      {"bitwise_and", {nullptr, kFunctions, bitwise_and}},
      {"bitwise_or", {nullptr, kFunctions, bitwise_or}},
      {"bitwise_xor", {nullptr, kFunctions, bitwise_xor}},
      {"bitwise_not", {nullptr, kFunctions, bitwise_not}},
      {"logical_xor", {"LogicalXor", kFunctions}},
      // scalar_activations.h
      {"gelu", {nullptr, kActivations, gelu}},
      {"gelu_grad", {nullptr, kActivations, gelu_grad}},
      {"silu", {"Silu", kActivations}},
      {"silu_grad", {"SiluGrad", kActivations}},
      {"hardsigmoid", {"HardSigmoid", kActivations}},
      {"hardswish", {"HardSwish", kActivations}},
      {"hardswish_grad", {"HardSwishGrad", kActivations}},
      {"mish", {"Mish", kActivations}},
      {"mish_grad", {"MishGrad", kActivations}},
      {"softsign", {"Softsign", kActivations}},
      {"logsigmoid", {"LogSigmoid", kActivations}},
      {"tanhshrink", {"TanhShrink", kActivations}},
      {"prelu", {"Prelu", kActivations}},
      {"softplus", {nullptr, kActivations, softplus}},
      {"softplus_grad", {nullptr, kActivations, softplus_grad}},
      {"elu", {nullptr, kActivations, elu}},
      {"selu", {nullptr, kActivations, selu}},
      {"celu", {nullptr, kActivations, celu}},
      {"elu_grad", {nullptr, kActivations, elu_grad}},
      {"clamp_grad", {nullptr, kActivations, clamp_grad}},
      {"leaky_relu", {nullptr, kActivations, leaky_relu}},
      {"hardshrink", {nullptr, kActivations, hardshrink}},
      {"softshrink", {nullptr, kActivations, softshrink}},
      {"threshold", {nullptr, kActivations, threshold}},
      // loss_scalar.h
      {"huber", {nullptr, kLosses, huber}},
      {"binary_cross_entropy", {"BinaryCrossEntropy", kLosses}},
      {"binary_cross_entropy_with_logits", {"BinaryCrossEntropyWithLogits", kLosses}},
      {"kl_div", {nullptr, kLosses, kl_div}},
  };
  return table;
}

// ---- ops that are no single functor ----

std::string from_f32(const std::string& text, DType to) {
  return to == DType::f16 ? fmt::format("to_f16({})", text) : to == DType::bf16 ? fmt::format("to_bf16({})", text) : text;
}

std::string as_f32(const std::string& value, DType from) {
  return kernels::is_half(from) ? fmt::format("to_f32({})", value) : value;
}

std::string cast(const std::string& value, DType from, DType to) {
  const std::string x = as_f32(value, from);
  if (to == DType::boolean) return fmt::format("ToBool{{}}({})", x);
  const char* const through = kernels::is_half(to) ? "float" : register_type(to);
  return from_f32(fmt::format("{}<{}>{{}}({})", from == DType::boolean ? "FromBool" : "Cast", through, x), to);
}

std::string sum(std::span<const std::string> terms) {
  std::string text = terms[0];
  for (const std::string& term : terms.subspan(1)) text = fmt::format("Add{{}}({}, {})", text, term);
  return text;
}

// The integer versions of these ops report a fault in the call, which a generated kernel does not.
bool reports_faults(std::string_view op, DType computed) {
  if (op == "left_shift" || op == "right_shift") return true;
  if (is_floating(computed)) return false;
  return op == "div" || op == "pow" || op == "remainder" || op == "fmod" || op == "floor_divide";
}

ScalarCall plain_call(const Graph& g, const Node& node, std::span<const std::string> operands, DType computed) {
  const char* const name = node.op->name;
  const std::string_view op = name;
  if (op == "copy") return {operands[0]};
  if (op == "add_n") return {sum(operands)};
  if (op == "addcmul") return {fmt::format("Add{{}}({}, Mul{{}}({}, {}))", operands[0], operands[1], operands[2])};
  if (op == "ema")
    return {fmt::format("Add{{}}({}, Mul{{}}({}, Sub{{}}({}, {})))", operands[0],
                        number(as<EmaAttrs>(g.attributes(node)).momentum, computed), operands[1], operands[0])};
  const auto found = functors().find(op);
  if (found == functors().end() || reports_faults(op, computed))
    throw DeviceError(error_text(
        name, fmt::format("a generated kernel cannot hold it: {}", g.node_text(static_cast<NodeId>(&node - g.nodes.data()))),
        {}));
  const Functor& f = found->second;
  const std::string functor = f.with ? f.with(g.attributes(node), computed) : fmt::format("{}{{}}", f.name);
  return {fmt::format("{}({})", functor, fmt::join(operands, ", ")), f.headers};
}

}  // namespace

ScalarCall scalar_call(const Graph& g, const Node& node, std::span<const std::string> operands) {
  const DType to = g.values[node.first_output].type.dtype, from = g.values[g.inputs(node)[0]].type.dtype;
  if (std::string_view(node.op->name) == "cast") return {cast(operands[0], from, to)};
  if (!runs_in_f32(*node.op, g.input_types(node), g.output_types(node))) return plain_call(g, node, operands, to);
  std::vector<std::string> converted;
  for (std::size_t i = 0; i < operands.size(); ++i)
    converted.push_back(as_f32(operands[i], g.values[g.inputs(node)[i]].type.dtype));
  ScalarCall call = plain_call(g, node, converted, kernels::is_half(to) ? DType::f32 : to);
  call.text = from_f32(call.text, to);
  return call;
}

}  // namespace tapedeck::codegen
