// References of the elementwise ops: one line of f64 arithmetic for each op.
#include <tapedeck/tests/engine/reference.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapedeck::testing {
namespace {

using V = const std::vector<double>&;

// Like elementwise(), for ops that compute differently on integers.
Reference by_kind(std::function<double(V)> floats, std::function<double(V)> integers) {
  return [=](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    return elementwise(is_floating(x[0].type.dtype) ? floats : integers)(e, x, out);
  };
}

double nan_or(double a, double b, double otherwise) { return std::isnan(a) || std::isnan(b) ? NAN : otherwise; }

double signum(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

// Multiplies repeatedly. 1/x of an integer is 0 unless x is 1 or -1.
double integer_power(double base, double exponent) {
  if (exponent < 0) return std::fabs(base) == 1 ? integer_power(base, -exponent) : 0;
  double product = 1;
  for (double i = 0; i < exponent; ++i) product *= base;
  return product;
}

const AddReference arithmetic[] = {
    {"add", elementwise([](V x) { return x[0] + x[1]; })},
    {"sub", elementwise([](V x) { return x[0] - x[1]; })},
    {"mul", elementwise([](V x) { return x[0] * x[1]; })},
    {"div", by_kind([](V x) { return x[0] / x[1]; }, [](V x) { return std::trunc(x[0] / x[1]); })},
    {"pow", by_kind([](V x) { return std::pow(x[0], x[1]); }, [](V x) { return integer_power(x[0], x[1]); })},
    {"maximum", elementwise([](V x) { return nan_or(x[0], x[1], std::max(x[0], x[1])); })},
    {"minimum", elementwise([](V x) { return nan_or(x[0], x[1], std::min(x[0], x[1])); })},
};

const AddReference functions[] = {
    {"neg", elementwise([](V x) { return -x[0]; })},
    {"abs", elementwise([](V x) { return x[0] < 0 ? -x[0] : x[0]; })},
    {"sign", elementwise([](V x) { return signum(x[0]); })},
    {"square", elementwise([](V x) { return x[0] * x[0]; })},
    {"relu", elementwise([](V x) { return x[0] < 0 ? 0 : x[0]; })},
    {"exp", elementwise([](V x) { return std::exp(x[0]); })},
    {"log", elementwise([](V x) { return std::log(x[0]); })},
    {"sqrt", elementwise([](V x) { return std::sqrt(x[0]); })},
    {"rsqrt", elementwise([](V x) { return std::pow(x[0], -0.5); })},
    {"sin", elementwise([](V x) { return std::sin(x[0]); })},
    {"cos", elementwise([](V x) { return std::cos(x[0]); })},
    {"tanh", elementwise([](V x) { return -std::expm1(-2 * x[0]) / (2 + std::expm1(-2 * x[0])); })},
    {"sigmoid", elementwise([](V x) { return 0.5 + 0.5 * std::tanh(x[0] / 2); })},
    {"copy", elementwise([](V x) { return x[0]; })},
    {"to_device", elementwise([](V x) { return x[0]; })},
};

const AddReference gradients_by_the_result[] = {
    {"relu_grad", elementwise([](V x) { return x[0] > 0 ? x[1] : 0; })},
    {"tanh_grad", elementwise([](V x) { return x[1] - x[1] * x[0] * x[0]; })},
    {"sigmoid_grad", elementwise([](V x) { return x[1] * x[0] - x[1] * x[0] * x[0]; })},
};

const AddReference comparisons[] = {
    {"equal", elementwise([](V x) { return x[0] == x[1]; })},
    {"not_equal", elementwise([](V x) { return x[0] != x[1]; })},
    {"less", elementwise([](V x) { return x[0] < x[1]; })},
    {"less_equal", elementwise([](V x) { return x[0] <= x[1]; })},
    {"greater", elementwise([](V x) { return x[0] > x[1]; })},
    {"greater_equal", elementwise([](V x) { return x[0] >= x[1]; })},
    {"logical_and", elementwise([](V x) { return x[0] != 0 && x[1] != 0; })},
    {"logical_or", elementwise([](V x) { return x[0] != 0 || x[1] != 0; })},
    {"logical_not", elementwise([](V x) { return x[0] == 0; })},
    {"where", elementwise([](V x) { return x[0] != 0 ? x[1] : x[2]; })},
};

// A float becomes an integer by truncation and saturation; NaN becomes 0. An integer keeps its low bits; the comparison of
// the test cuts off the others.
double truncated(double x, DType to) {
  if (std::isnan(x)) return 0;
  const double bits = 8 * static_cast<double>(dtype_size(to));
  const double low = to == DType::u8 ? 0 : -std::ldexp(1, static_cast<int>(bits) - 1);
  const double high = to == DType::u8 ? 255 : std::ldexp(1, static_cast<int>(bits) - 1) - 1;
  return std::clamp(std::trunc(x), low, high);
}

const AddReference conversions[] = {
    {"cast",
     [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
       const DType from = x[0].type.dtype, to = out[0].dtype;
       return elementwise([=](V v) {
         if (to == DType::boolean) return v[0] != 0 ? 1.0 : 0.0;
         return is_floating(from) && !is_floating(to) ? truncated(v[0], to) : v[0];
       })(e, x, out);
     }},
};

}  // namespace
}  // namespace tapedeck::testing
