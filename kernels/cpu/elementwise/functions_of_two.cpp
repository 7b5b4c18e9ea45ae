// Mathematical functions of two and three operands.
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class F>
void floats(const KernelCall& call, double f32_ns, double f64_ns) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, F{}, sizeof(T) == 4 ? f32_ns : f64_ns);
  });
}

// Calls F and reports an integer division by zero.
template <class F>
struct Checked {
  KernelFault* fault;
  template <class T>
  T operator()(T a, T b) const {
    if (b == T(0)) fault->report("integer division by zero", 0);
    return F{}(a, b);
  }
};

template <class F>
void division(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>)
      map<T, T, T>(call, Checked<F>{call.fault}, 3.0);
    else
      map<T, T, T>(call, F{}, 12.0);
  });
}

}  // namespace

void remainder(const KernelCall& call) { division<Remainder>(call); }
void fmod(const KernelCall& call) { division<Fmod>(call); }
void floor_divide(const KernelCall& call) { division<FloorDivide>(call); }

void atan2(const KernelCall& call) { floats<Atan2>(call, 1, 15); }
void hypot(const KernelCall& call) { floats<Hypot>(call, 1, 5); }
void logaddexp(const KernelCall& call) { floats<LogAddExp>(call, 1.2, 15); }
void copysign(const KernelCall& call) { floats<CopySign>(call, 0.5, 0.5); }

void lerp(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T, T>(call, Lerp{});
  });
}

void isclose(const KernelCall& call) {
  const auto& a = call.attributes<IsCloseAttrs>();
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<std::uint8_t, T, T>(call, IsClose{a.rtol, a.atol, a.equal_nan}, 1.0);
  });
}

}  // namespace tapedeck::kernels::cpu
