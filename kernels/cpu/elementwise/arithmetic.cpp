// Arithmetic of two operands, and gradients that are arithmetic on a result and its gradient.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar.h>

#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

template <class F>
void numbers(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, F{});
  });
}

template <class F>
void floats(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, F{});
  });
}

struct CheckedDiv {
  KernelFault* fault;
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) fault->report("integer division by zero", 0);
    }
    return Div{}(a, b);
  }
};

struct CheckedPow {
  KernelFault* fault;
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (a == T(0) && b < T(0)) fault->report("integer zero to a negative power", static_cast<std::int64_t>(b));
    }
    return Pow{}(a, b);
  }
};

}  // namespace

void add(const KernelCall& call) { numbers<Add>(call); }
void sub(const KernelCall& call) { numbers<Sub>(call); }
void mul(const KernelCall& call) { numbers<Mul>(call); }
void maximum(const KernelCall& call) { numbers<Maximum>(call); }
void minimum(const KernelCall& call) { numbers<Minimum>(call); }

void div(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>)
      map<T, T, T>(call, CheckedDiv{call.fault}, 3.0);
    else
      map<T, T, T>(call, Div{});
  });
}

void pow(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, CheckedPow{call.fault}, 10.0);
  });
}

void relu_grad(const KernelCall& call) { floats<ReluGrad>(call); }
void tanh_grad(const KernelCall& call) { floats<TanhGrad>(call); }
void sigmoid_grad(const KernelCall& call) { floats<SigmoidGrad>(call); }

}  // namespace tapedeck::kernels::cpu
