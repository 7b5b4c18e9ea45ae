// Functions of one operand that are arithmetic, or that every network uses.
#pragma once

#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

template <>
inline constexpr bool kLarge<Sin> = true;
template <>
inline constexpr bool kLarge<Cos> = true;

TAPEDECK_MAPPED(neg, unary_numbers, Neg)
TAPEDECK_MAPPED(abs, unary_numbers, Abs)
TAPEDECK_MAPPED(sign, unary_numbers, Sign)
TAPEDECK_MAPPED(relu, unary_numbers, Relu)
TAPEDECK_MAPPED(square, unary_numbers, Square)
TAPEDECK_MAPPED(exp, unary_floats, Exp)
TAPEDECK_MAPPED(log, unary_floats, Log)
TAPEDECK_MAPPED(tanh, unary_floats, Tanh)
TAPEDECK_MAPPED(sigmoid, unary_floats, Sigmoid)
TAPEDECK_MAPPED(sqrt, unary_floats, Sqrt)
TAPEDECK_MAPPED(rsqrt, unary_floats, Rsqrt)
TAPEDECK_MAPPED(sin, unary_floats, Sin)
TAPEDECK_MAPPED(cos, unary_floats, Cos)
TAPEDECK_MAPPED(reciprocal, unary_floats, Reciprocal)
TAPEDECK_MAPPED(frac, unary_floats, Frac)

// Rounding leaves integers as they are.
struct Same {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    return x;
  }
};
template <class F>
void rounding(const KernelCall& call) {
  if (is_floating(call.outputs[0].dtype)) return unary_floats<F>(call);
  for_element_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_singly<T, T>(call, Same{});
  });
}
TAPEDECK_MAPPED(floor, rounding, Floor)
TAPEDECK_MAPPED(ceil, rounding, Ceil)
TAPEDECK_MAPPED(round, rounding, Round)
TAPEDECK_MAPPED(trunc, rounding, Trunc)

// The bound as an element of the type, which saturates it.
template <class V>
V bound_of(DType dtype, double bound) {
  if (dtype == DType::i32) return static_cast<V>(Cast<std::int32_t>{}(bound));
  if (dtype == DType::u8) return static_cast<V>(Cast<std::uint8_t>{}(bound));
  return Cast<V>{}(bound);
}

void clamp(const KernelCall& call) {
  const auto& a = call.attributes<ClampAttrs>();
  const DType dtype = call.outputs[0].dtype;
  for_all_numbers(call, dtype, [&](auto t) {
    using T = decltype(t);
    const auto low = bound_of<Value<T>>(dtype, a.min), high = bound_of<Value<T>>(dtype, a.max);
    map_family<T, T>(call, Clamp<Value<T>>{low < high ? low : high, high});
  });
}

void nan_to_num(const KernelCall& call) {
  const auto& a = call.attributes<NanToNumAttrs>();
  unary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return NanToNum<T>{static_cast<T>(a.nan), static_cast<T>(a.posinf), static_cast<T>(a.neginf)};
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
