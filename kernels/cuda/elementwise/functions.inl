// Mathematical functions of one and two operands.
#pragma once

#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

template <>
inline constexpr bool kLarge<Tan> = true;
template <>
inline constexpr bool kLarge<Lgamma> = true;
template <>
inline constexpr bool kLarge<Digamma> = true;
template <>
inline constexpr bool kLarge<Polygamma> = true;

TAPEDECK_MAPPED(exp2, unary_floats, Exp2)
TAPEDECK_MAPPED(expm1, unary_floats, Expm1)
TAPEDECK_MAPPED(log2, unary_floats, Log2)
TAPEDECK_MAPPED(log10, unary_floats, Log10)
TAPEDECK_MAPPED(log1p, unary_floats, Log1p)
TAPEDECK_MAPPED(tan, unary_floats, Tan)
TAPEDECK_MAPPED(asin, unary_floats, Asin)
TAPEDECK_MAPPED(acos, unary_floats, Acos)
TAPEDECK_MAPPED(atan, unary_floats, Atan)
TAPEDECK_MAPPED(sinh, unary_floats, Sinh)
TAPEDECK_MAPPED(cosh, unary_floats, Cosh)
TAPEDECK_MAPPED(asinh, unary_floats, Asinh)
TAPEDECK_MAPPED(acosh, unary_floats, Acosh)
TAPEDECK_MAPPED(atanh, unary_floats, Atanh)
TAPEDECK_MAPPED(erf, unary_floats, Erf)
TAPEDECK_MAPPED(erfc, unary_floats, Erfc)
TAPEDECK_MAPPED(erfinv, unary_floats, Erfinv)
TAPEDECK_MAPPED(lgamma, unary_floats, Lgamma)
TAPEDECK_MAPPED(digamma, unary_floats, Digamma)

void polygamma(const KernelCall& call) {
  const int n = static_cast<int>(call.attributes<PolygammaAttrs>().n);
  unary_floats_of(call, [&](auto) { return Polygamma{n}; });
}

TAPEDECK_MAPPED(atan2, binary_floats, Atan2)
TAPEDECK_MAPPED(hypot, binary_floats, Hypot)
TAPEDECK_MAPPED(logaddexp, binary_floats, LogAddExp)
TAPEDECK_MAPPED(copysign, binary_floats, CopySign)
TAPEDECK_MAPPED(lerp, ternary_floats, Lerp)

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
