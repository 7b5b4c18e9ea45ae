// Comparisons, tests of one operand, logic, bits of integers, and selection by a condition. Booleans are bytes.
#pragma once

#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

using Byte = std::uint8_t;

template <class F>
void compare_by(const KernelCall& call, const F& f) {
  const DType dtype = call.inputs[0].dtype;
  for_all_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, [&](auto t) {
    using T = decltype(t);
    map_family<Byte, T, T>(call, f);
  });
}
template <class F>
void compare(const KernelCall& call) {
  compare_by(call, F{});
}
TAPEDECK_MAPPED(equal, compare, Equal)
TAPEDECK_MAPPED(not_equal, compare, NotEqual)
TAPEDECK_MAPPED(less, compare, Less)
TAPEDECK_MAPPED(less_equal, compare, LessEqual)

// a > b is b < a, also where one is NaN, so half of the comparisons need no compiled kernel of their own.
template <class F>
void compare_swapped(const KernelCall& call) {
  const View inputs[] = {call.inputs[1], call.inputs[0]};
  KernelCall swapped = call;
  swapped.inputs = inputs;
  compare<F>(swapped);
}
TAPEDECK_MAPPED(greater, compare_swapped, Less)
TAPEDECK_MAPPED(greater_equal, compare_swapped, LessEqual)

void isclose(const KernelCall& call) {
  const auto& a = call.attributes<IsCloseAttrs>();
  compare_by(call, IsClose{a.rtol, a.atol, a.equal_nan});
}

struct Always {
  Byte answer;
  TAPEDECK_HD Byte operator()() const { return answer; }
};
// Every integer gives the same answer, which F has for 0.
template <class F>
void test(const KernelCall& call) {
  if (!is_floating(call.inputs[0].dtype)) return map_singly<Byte>(call, Always{F{}(0)});
  for_reals(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<Byte, T>(call, F{});
  });
}
TAPEDECK_MAPPED(isnan, test, IsNan)
TAPEDECK_MAPPED(isinf, test, IsInf)
TAPEDECK_MAPPED(isfinite, test, IsFinite)

template <class F>
void logic(const KernelCall& call) {
  map<Byte, Byte, Byte>(call, F{});
}
TAPEDECK_MAPPED(logical_and, logic, LogicalAnd)
TAPEDECK_MAPPED(logical_or, logic, LogicalOr)
TAPEDECK_MAPPED(logical_xor, logic, LogicalXor)
void logical_not(const KernelCall& call) { map<Byte, Byte>(call, LogicalNot{}); }

template <class Bits, class Logic>
void combine(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::boolean) return logic<Logic>(call);
  map_singly<Integer, Integer, Integer>(call, Bits{});
}
TAPEDECK_MAPPED(bitwise_and, combine, BitwiseAnd, LogicalAnd)
TAPEDECK_MAPPED(bitwise_or, combine, BitwiseOr, LogicalOr)
TAPEDECK_MAPPED(bitwise_xor, combine, BitwiseXor, LogicalXor)

void bitwise_not(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::boolean) return logical_not(call);
  map_singly<Integer, Integer>(call, BitwiseNot{});
}

struct NotNegative {
  static constexpr Fault kFault = Fault::negative_shift;
  template <class T>
  TAPEDECK_DEVICE static bool broken(T, T b) {
    return b < T(0);
  }
};
TAPEDECK_MAPPED(left_shift, checked_integers, LeftShift, NotNegative)
TAPEDECK_MAPPED(right_shift, checked_integers, RightShift, NotNegative)

void where(const KernelCall& call) {
  for_element_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, Byte, T, T>(call, Where{});
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
