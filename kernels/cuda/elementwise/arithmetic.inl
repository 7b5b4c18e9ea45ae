// Arithmetic of two and more operands, and gradients that are arithmetic on a result and its gradient.
#pragma once

#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

template <>
inline constexpr bool kLarge<Pow> = true;
template <>
inline constexpr bool kLarge<Remainder> = true;
template <>
inline constexpr bool kLarge<Fmod> = true;
template <>
inline constexpr bool kLarge<FloorDivide> = true;

struct NotByZero {
  static constexpr Fault kFault = Fault::division_by_zero;
  template <class T>
  TAPEDECK_DEVICE static bool broken(T, T b) {
    return b == T(0);
  }
};
struct NoNegativePowerOfZero {
  static constexpr Fault kFault = Fault::negative_power_of_zero;
  template <class T>
  TAPEDECK_DEVICE static bool broken(T a, T b) {
    return a == T(0) && b < T(0);
  }
};

struct AddProduct {
  template <class T>
  TAPEDECK_HD T operator()(T sum, T a, T b) const {
    return Add{}(sum, Mul{}(a, b));
  }
};

template <class T>
struct Ema {
  T momentum;
  TAPEDECK_HD T operator()(T running, T batch) const { return running + momentum * (batch - running); }
};

TAPEDECK_MAPPED(add, binary_numbers, Add)
TAPEDECK_MAPPED(sub, binary_numbers, Sub)
TAPEDECK_MAPPED(mul, binary_numbers, Mul)
TAPEDECK_MAPPED(maximum, binary_numbers, Maximum)
TAPEDECK_MAPPED(minimum, binary_numbers, Minimum)
TAPEDECK_MAPPED(div, checked_numbers, Div, NotByZero)
TAPEDECK_MAPPED(pow, checked_numbers, Pow, NoNegativePowerOfZero)
TAPEDECK_MAPPED(remainder, checked_numbers, Remainder, NotByZero)
TAPEDECK_MAPPED(fmod, checked_numbers, Fmod, NotByZero)
TAPEDECK_MAPPED(floor_divide, checked_numbers, FloorDivide, NotByZero)
TAPEDECK_MAPPED(relu_grad, binary_floats, ReluGrad)
TAPEDECK_MAPPED(tanh_grad, binary_floats, TanhGrad)
TAPEDECK_MAPPED(sigmoid_grad, binary_floats, SigmoidGrad)
TAPEDECK_MAPPED(addcmul, ternary_numbers, AddProduct)

void ema(const KernelCall& call) {
  const double momentum = call.attributes<EmaAttrs>().momentum;
  binary_floats_of(call, [&](auto t) { return Ema<decltype(t)>{static_cast<decltype(t)>(momentum)}; });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
