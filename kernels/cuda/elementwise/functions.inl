// Mathematical functions of one and two operands.
#pragma once

#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// These functions are rare in training and have much code, so they are compiled for one element at a time.
template <class F>
void unary_floats_singly(const KernelCall& call) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_singly<T, T>(call, F{});
  });
}
template <class F>
void binary_floats_singly(const KernelCall& call) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_singly<T, T, T>(call, F{});
  });
}

TAPEDECK_MAPPED(exp2, unary_floats_singly, Exp2)
TAPEDECK_MAPPED(expm1, unary_floats_singly, Expm1)
TAPEDECK_MAPPED(log2, unary_floats_singly, Log2)
TAPEDECK_MAPPED(log10, unary_floats_singly, Log10)
TAPEDECK_MAPPED(log1p, unary_floats_singly, Log1p)
TAPEDECK_MAPPED(tan, unary_floats_singly, Tan)
TAPEDECK_MAPPED(asin, unary_floats_singly, Asin)
TAPEDECK_MAPPED(acos, unary_floats_singly, Acos)
TAPEDECK_MAPPED(atan, unary_floats_singly, Atan)
TAPEDECK_MAPPED(sinh, unary_floats_singly, Sinh)
TAPEDECK_MAPPED(cosh, unary_floats_singly, Cosh)
TAPEDECK_MAPPED(asinh, unary_floats_singly, Asinh)
TAPEDECK_MAPPED(acosh, unary_floats_singly, Acosh)
TAPEDECK_MAPPED(atanh, unary_floats_singly, Atanh)
TAPEDECK_MAPPED(erf, unary_floats_singly, Erf)
TAPEDECK_MAPPED(erfc, unary_floats_singly, Erfc)
TAPEDECK_MAPPED(erfinv, unary_floats_singly, Erfinv)
TAPEDECK_MAPPED(lgamma, unary_floats_singly, Lgamma)
TAPEDECK_MAPPED(digamma, unary_floats_singly, Digamma)

void polygamma(const KernelCall& call) {
  const int n = static_cast<int>(call.attributes<PolygammaAttrs>().n);
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_singly<T, T>(call, Polygamma{n});
  });
}

TAPEDECK_MAPPED(atan2, binary_floats_singly, Atan2)
TAPEDECK_MAPPED(hypot, binary_floats_singly, Hypot)
TAPEDECK_MAPPED(logaddexp, binary_floats_singly, LogAddExp)
TAPEDECK_MAPPED(copysign, binary_floats_singly, CopySign)

void lerp(const KernelCall& call) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_singly<T, T, T, T>(call, Lerp{});
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
