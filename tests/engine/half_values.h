// Converts 16-bit floats to doubles and back by the definition of the formats, without the engine's own conversions.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tapedeck::testing {

struct HalfFormat {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int top() const { return (1 << exponent_bits) - 1; }  // the exponent of infinities and NaNs
};
inline HalfFormat half_format(DType d) { return d == DType::f16 ? HalfFormat{5, 10} : HalfFormat{8, 7}; }

inline double half_value(DType d, std::uint16_t bits) {
  const HalfFormat f = half_format(d);
  const int exponent = (bits >> f.fraction_bits) & f.top(), fraction = bits & ((1 << f.fraction_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == f.top()) return fraction ? NAN : sign * INFINITY;
  const int leading = exponent ? 1 << f.fraction_bits : 0;
  return sign * std::ldexp(leading + fraction, (exponent ? exponent : 1) - f.bias() - f.fraction_bits);
}

// Rounds to nearest, ties to even. A number that is too large becomes infinite.
inline std::uint16_t half_bits(DType d, double value) {
  const HalfFormat f = half_format(d);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>((f.top() << f.fraction_bits) | 1 << (f.fraction_bits - 1));
  if (value == 0) return sign;
  const int infinite = f.top() << f.fraction_bits;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1 + f.bias(), 1);  // subnormals share the lowest exponent
  if (std::isinf(value) || exponent >= f.top()) return static_cast<std::uint16_t>(sign | infinite);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), f.bias() + f.fraction_bits - exponent)));
  const int bits = ((exponent - 1) << f.fraction_bits) + units;  // the leading bit, if any, carries into the exponent
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace tapedeck::testing
