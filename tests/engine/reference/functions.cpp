// References of the mathematical functions: the standard library in f64, or slow series where the library has no function.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/engine/ops/functions.h>

#include <cmath>
#include <limits>

namespace tapedeck::testing {
namespace {

using Args = const std::vector<double>&;

Reference one(double (*f)(double)) {
  return elementwise([f](Args x) { return f(x[0]); });
}

// Inverts erf by bisection.
double erfinv(double x) {
  double low = -6, high = 6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < x ? low : high) = middle;
  }
  return (low + high) / 2;
}

// The Hurwitz zeta function, the sum of (x + k)^-s over k >= 0: many terms, then the integral of the rest with two
// corrections.
double hurwitz(int s, double x) {
  constexpr int kTerms = 3000;
  double total = 0;
  for (int k = kTerms - 1; k >= 0; --k) total += std::pow(x + k, -s);
  const double a = x + kTerms;
  return total + std::pow(a, 1 - s) / (s - 1) + std::pow(a, -s) / 2 + s * std::pow(a, -s - 1) / 12;
}

double polygamma(int n, double x) { return (n % 2 ? 1 : -1) * std::tgamma(n + 1.0) * hurwitz(n + 1, x); }

// Sums -1/x - 1/(x+1) - ... up to a large argument, for which the logarithm is a good approximation.
double digamma(double x) {
  double y = 0;
  for (int k = 0; k < 3000; ++k) y -= 1 / (x + k);
  const double a = x + 3000;
  return y + std::log(a) - 1 / (2 * a) - 1 / (12 * a * a);
}

double python_remainder(double a, double b) { return a - b * std::floor(a / b); }

double half_to_even(double x) {
  const double low = std::floor(x), gap = x - low;
  if (gap != 0.5) return gap < 0.5 ? low : low + 1;
  return std::fmod(low, 2) == 0 ? low : low + 1;
}

const AddReference function_references[] = {
    {"exp2", one([](double x) { return std::pow(2.0, x); })},
    {"expm1", one([](double x) { return std::expm1(x); })},
    {"log2", one([](double x) { return std::log(x) / std::log(2.0); })},
    {"log10", one([](double x) { return std::log(x) / std::log(10.0); })},
    {"log1p", one([](double x) { return std::log1p(x); })},
    {"tan", one([](double x) { return std::sin(x) / std::cos(x); })},
    {"asin", one([](double x) { return std::atan2(x, std::sqrt(1 - x * x)); })},
    {"acos", one([](double x) { return std::atan2(std::sqrt(1 - x * x), x); })},
    {"atan", one([](double x) { return std::asin(x / std::sqrt(1 + x * x)); })},
    {"sinh", one([](double x) { return (std::exp(x) - std::exp(-x)) / 2; })},
    {"cosh", one([](double x) { return (std::exp(x) + std::exp(-x)) / 2; })},
    {"asinh", one([](double x) { return std::log(x + std::sqrt(x * x + 1)); })},
    {"acosh", one([](double x) { return std::log(x + std::sqrt(x * x - 1)); })},
    {"atanh", one([](double x) { return 0.5 * std::log((1 + x) / (1 - x)); })},
    {"erf", one([](double x) { return 1 - std::erfc(x); })},
    {"erfc", one([](double x) { return std::erfc(x); })},
    {"erfinv", one(erfinv)},
    {"lgamma", one([](double x) { return std::log(std::fabs(std::tgamma(x))); })},
    {"digamma", one(digamma)},
    {"reciprocal", one([](double x) { return 1 / x; })},
    {"floor", one([](double x) { return std::floor(x); })},
    {"ceil", one([](double x) { return -std::floor(-x); })},
    {"round", one(half_to_even)},
    {"trunc", one([](double x) { return x < 0 ? -std::floor(-x) : std::floor(x); })},
    {"frac", one([](double x) { return x < 0 ? x + std::floor(-x) : x - std::floor(x); })},
    {"isnan", one([](double x) { return std::isnan(x) ? 1.0 : 0.0; })},
    {"isinf", one([](double x) { return std::isinf(x) ? 1.0 : 0.0; })},
    {"isfinite", one([](double x) { return std::isfinite(x) ? 1.0 : 0.0; })},
    {"remainder", elementwise([](Args x) { return python_remainder(x[0], x[1]); })},
    {"fmod", elementwise([](Args x) { return x[0] - x[1] * std::trunc(x[0] / x[1]); })},
    {"floor_divide", elementwise([](Args x) { return std::floor(x[0] / x[1]); })},
    {"atan2", elementwise([](Args x) { return std::atan2(x[0], x[1]); })},
    {"hypot", elementwise([](Args x) { return std::sqrt(x[0] * x[0] + x[1] * x[1]); })},
    {"logaddexp", elementwise([](Args x) { return std::log(std::exp(x[0]) + std::exp(x[1])); })},
    {"copysign", elementwise([](Args x) { return std::signbit(x[1]) ? -std::fabs(x[0]) : std::fabs(x[0]); })},
    {"lerp", elementwise([](Args x) { return (1 - x[2]) * x[0] + x[2] * x[1]; })},
    {"polygamma",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       Array y = blank(out[0]);
       const int n = static_cast<int>(attributes_of<PolygammaAttrs>(e).n);
       for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = polygamma(n, x[0].v[i]);
       return std::vector<Array>{y};
     }},
    {"clamp",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       Array y = blank(out[0]);
       const auto& a = attributes_of<ClampAttrs>(e);
       for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = std::min(std::max(x[0].v[i], a.min), a.max);
       return std::vector<Array>{y};
     }},
    {"nan_to_num",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       Array y = blank(out[0]);
       const auto& a = attributes_of<NanToNumAttrs>(e);
       for (std::size_t i = 0; i < y.v.size(); ++i) {
         const double v = x[0].v[i];
         y.v[i] = std::isnan(v) ? a.nan : !std::isinf(v) ? v : v > 0 ? a.posinf : a.neginf;
       }
       return std::vector<Array>{y};
     }},
    {"isclose",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       const auto& a = attributes_of<IsCloseAttrs>(e);
       return elementwise([&](Args v) { return std::fabs(v[0] - v[1]) <= a.atol + a.rtol * std::fabs(v[1]) ? 1.0 : 0.0; })(e, x,
                                                                                                                           out);
     }},
};

}  // namespace
}  // namespace tapedeck::testing
