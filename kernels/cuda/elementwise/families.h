// Families of elementwise ops. A family is the set of element types for which the functor of an op is compiled: `Real` (f32,
// f16, bf16) several elements at a time, and the other types one at a time, since they are rare in training.
//
//   TAPEDECK_MAPPED(add, binary_numbers, Add)     // void add(const KernelCall&), the functor Add for all numbers
#pragma once

#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/elementwise/map.h>
#include <tapedeck/kernels/scalar.h>

#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// A functor with much code is compiled once per type.
template <class F>
inline constexpr bool kLarge = false;

template <class Out, class T, class... Rest, class F>
void map_family(const KernelCall& call, const F& f) {
  if constexpr (std::is_same_v<T, Real> && !kLarge<F>)
    map<Out, T, Rest...>(call, f);
  else
    map_singly<Out, T, Rest...>(call, f);
}

// Each calls make(Value<T>{}) for the functor of type T.
template <class Make>
void unary_floats_of(const KernelCall& call, const Make& make) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T>(call, make(Value<T>{}));
  });
}
template <class Make>
void binary_floats_of(const KernelCall& call, const Make& make) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T, T>(call, make(Value<T>{}));
  });
}

template <class F>
void unary_floats(const KernelCall& call) {
  unary_floats_of(call, [](auto) { return F{}; });
}
template <class F>
void unary_numbers(const KernelCall& call) {
  for_all_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T>(call, F{});
  });
}
template <class F>
void binary_floats(const KernelCall& call) {
  binary_floats_of(call, [](auto) { return F{}; });
}
template <class F>
void binary_numbers(const KernelCall& call) {
  for_all_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T, T>(call, F{});
  });
}
template <class F>
void ternary_floats(const KernelCall& call) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T, T, T>(call, F{});
  });
}
template <class F>
void ternary_numbers(const KernelCall& call) {
  for_all_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map_family<T, T, T, T>(call, F{});
  });
}

// Calls F. Reports the operand b of an integer operation that Rule does not allow.
template <class F, class Rule>
struct Checked {
  KernelFault* fault;
  template <class T>
  TAPEDECK_DEVICE T operator()(T a, T b) const {
    if (Rule::broken(a, b)) report_fault(fault, Rule::kFault, static_cast<std::int64_t>(b));
    return F{}(a, b);
  }
};

template <class F, class Rule>
void checked_integers(const KernelCall& call) {
  map_singly<Integer, Integer, Integer>(call, Checked<F, Rule>{call.fault});
}
// Integers are checked by Rule; other numbers need no check.
template <class F, class Rule>
void checked_numbers(const KernelCall& call) {
  if (is_floating(call.outputs[0].dtype)) return binary_floats<F>(call);
  checked_integers<F, Rule>(call);
}

#define TAPEDECK_MAPPED(name, family, ...) \
  void name(const KernelCall& call) { family<__VA_ARGS__>(call); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
