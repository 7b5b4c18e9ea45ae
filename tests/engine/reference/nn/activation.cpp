// References of the activations by their textbook formulas. Each gradient has its derivative written out for one number.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/engine/ops/activation.h>
#include <tapedeck/kernels/attrs/functions.h>

#include <cmath>
#include <numbers>

namespace tapedeck::testing {
namespace {

using Args = const std::vector<double>&;

Reference one(double (*f)(double)) {
  return elementwise([f](Args x) { return f(x[0]); });
}
// dy times the derivative at the first operand, elementwise.
Reference times(double (*derivative)(double)) {
  return elementwise([derivative](Args x) { return x[1] * derivative(x[0]); });
}
// An elementwise reference whose function also gets the op's attributes.
template <class A>
Reference with(double (*f)(const A&, Args)) {
  return [f](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    return elementwise([&](Args v) { return f(attributes_of<A>(e), v); })(e, x, out);
  };
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log(1 + std::exp(x)); }

const double kTanhScale = std::sqrt(2 / std::numbers::pi);
bool by_tanh(const GeluAttrs& a) { return a.approximate.view() == "tanh"; }

double gelu(const GeluAttrs& a, Args v) {
  const double x = v[0];
  if (by_tanh(a)) return 0.5 * x * (1 + std::tanh(kTanhScale * (x + 0.044715 * x * x * x)));
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}
double gelu_grad(const GeluAttrs& a, Args v) {
  const double x = v[0], dy = v[1];
  if (by_tanh(a)) {
    const double t = std::tanh(kTanhScale * (x + 0.044715 * x * x * x));
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * 0.044715 * x * x));
  }
  return dy * (0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi));
}

double silu_slope(double x) { return sigmoid(x) + x * sigmoid(x) * sigmoid(-x); }
double mish_slope(double x) {
  const double t = std::tanh(softplus(x));
  return t + x * (1 - t * t) * sigmoid(x);
}
double hardswish(double x) { return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6; }
double hardswish_slope(double x) { return x < -3 ? 0 : x > 3 ? 1 : (2 * x + 3) / 6; }
double hardsigmoid(double x) { return std::min(std::max((x + 3) / 6, 0.0), 1.0); }

double elu(double x, double alpha) { return x > 0 ? x : alpha * (std::exp(x) - 1); }
double selu(double x) { return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717); }
double celu(const EluAttrs& a, Args v) { return std::max(v[0], 0.0) + std::min(0.0, a.alpha * (std::exp(v[0] / a.alpha) - 1)); }
double elu_grad(const EluGradAttrs& a, Args v) {
  return v[0] > 0 ? v[1] * a.scale : v[1] * a.slope * (v[0] + a.alpha * a.scale);
}

double clamp_grad(const ClampAttrs& a, Args v) { return v[0] <= a.min || v[0] >= a.max ? 0 : v[1]; }

double scaled_softplus(const SoftplusAttrs& a, Args v) {
  return v[0] * a.beta > a.threshold ? v[0] : softplus(v[0] * a.beta) / a.beta;
}
double softplus_grad(const SoftplusAttrs& a, Args v) {
  return v[0] * a.beta > a.threshold ? v[1] : v[1] * (1 - std::exp(-a.beta * v[0]));
}

double hardshrink(const ShrinkAttrs& a, Args v) { return v[0] > a.bound || v[0] < -a.bound ? v[0] : 0; }
double softshrink(const ShrinkAttrs& a, Args v) {
  return v[0] > a.bound ? v[0] - a.bound : v[0] < -a.bound ? v[0] + a.bound : 0;
}

const AddReference refs[] = {
    {"gelu", with<GeluAttrs>(gelu)},
    {"gelu_grad", with<GeluAttrs>(gelu_grad)},
    {"silu", one([](double x) { return x * sigmoid(x); })},
    {"silu_grad", times(silu_slope)},
    {"mish", one([](double x) { return x * std::tanh(softplus(x)); })},
    {"mish_grad", times(mish_slope)},
    {"hardswish", one(hardswish)},
    {"hardswish_grad", times(hardswish_slope)},
    {"hardsigmoid", one(hardsigmoid)},
    {"softplus", with<SoftplusAttrs>(scaled_softplus)},
    {"softplus_grad", with<SoftplusAttrs>(softplus_grad)},
    {"logsigmoid", one([](double x) { return std::log(sigmoid(x)); })},
    {"softsign", one([](double x) { return x / (1 + std::fabs(x)); })},
    {"tanhshrink", one([](double x) { return x - std::tanh(x); })},
    {"elu", with<EluAttrs>([](const EluAttrs& a, Args v) { return elu(v[0], a.alpha); })},
    {"selu", one(selu)},
    {"celu", with<EluAttrs>(celu)},
    {"elu_grad", with<EluGradAttrs>(elu_grad)},
    {"clamp_grad", with<ClampAttrs>(clamp_grad)},
    {"leaky_relu", with<LeakyReluAttrs>([](const LeakyReluAttrs& a, Args v) { return v[0] > 0 ? v[0] : a.slope * v[0]; })},
    {"prelu", elementwise([](Args v) { return v[0] > 0 ? v[0] : v[1] * v[0]; })},
    {"hardshrink", with<ShrinkAttrs>(hardshrink)},
    {"softshrink", with<ShrinkAttrs>(softshrink)},
    {"threshold", with<ThresholdAttrs>([](const ThresholdAttrs& a, Args v) { return v[0] > a.threshold ? v[0] : a.value; })},
};

}  // namespace
}  // namespace tapedeck::testing
