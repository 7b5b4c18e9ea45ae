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

// Powers of integers, with a report of the base 0 under a negative exponent.
struct CheckedPow {
  KernelFault* fault;
  template <class T>
  T operator()(T a, T b) const {
    if (a == T(0) && b < T(0)) fault->report("integer zero to a negative power", static_cast<std::int64_t>(b));
    return Pow{}(a, b);
  }
};

// Powers of floats with one exponent, by the bodies of Pow.
template <int kHalves>
struct FixedPow {
  template <class T>
  T operator()(T a) const {
    if constexpr (kHalves == 4) return Pow::squared(a);
    if constexpr (kHalves == 6) return Pow::cubed(a);
    if constexpr (kHalves == 1) return Pow::root(a);
    if constexpr (kHalves == -1) return T(1) / Pow::root(a);
    if constexpr (kHalves == -2) return T(1) / a;
  }
};

// A row of powers of floats. A row with one exponent, as in pow(x, 2), takes the loop of that exponent if it has one.
template <class T>
void pow_row(const void* f, char* const* ptr, const std::int64_t* strides, std::int64_t n) {
  const T b = n > 0 && strides[2] == 0 ? *reinterpret_cast<const T*>(ptr[2]) : T(0);
  const auto by = [&]<int kHalves>(FixedPow<kHalves> power) { detail::row<FixedPow<kHalves>, T, T>(&power, ptr, strides, n); };
  if (b == T(2)) return by(FixedPow<4>{});
  if (b == T(3)) return by(FixedPow<6>{});
  if (b == T(0.5)) return by(FixedPow<1>{});
  if (b == T(-0.5)) return by(FixedPow<-1>{});
  if (b == T(-1)) return by(FixedPow<-2>{});
  detail::row<Pow, T, T, T>(f, ptr, strides, n);
}

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
    if constexpr (std::is_integral_v<T>)
      map<T, T, T>(call, CheckedPow{call.fault}, 10.0);
    else
      map_rows(call, pow_row<T>, Pow{}, sizeof(T) == 4 ? 2.0 : 10.0);
  });
}

void relu_grad(const KernelCall& call) { floats<ReluGrad>(call); }
void tanh_grad(const KernelCall& call) { floats<TanhGrad>(call); }
void sigmoid_grad(const KernelCall& call) { floats<SigmoidGrad>(call); }

}  // namespace tapedeck::kernels::cpu
