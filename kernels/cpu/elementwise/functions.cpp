// Mathematical functions of one operand. The numbers are costs in nanoseconds per element, for f32 and f64; they set the grain.
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class F>
void floats(const KernelCall& call, double f32_ns, double f64_ns, const F& f = {}) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, f, sizeof(T) == 4 ? f32_ns : f64_ns);
  });
}

template <class F>
void numbers(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, F{});
  });
}

template <class F>
void to_mask(const KernelCall& call) {
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<std::uint8_t, T>(call, F{});
  });
}

}  // namespace

void exp2(const KernelCall& call) { floats<Exp2>(call, 0.5, 5); }
void expm1(const KernelCall& call) { floats<Expm1>(call, 0.6, 8); }
void log2(const KernelCall& call) { floats<Log2>(call, 0.5, 5); }
void log10(const KernelCall& call) { floats<Log10>(call, 0.5, 8); }
void log1p(const KernelCall& call) { floats<Log1p>(call, 0.8, 8); }
void tan(const KernelCall& call) { floats<Tan>(call, 1, 12); }
void asin(const KernelCall& call) { floats<Asin>(call, 0.8, 8); }
void acos(const KernelCall& call) { floats<Acos>(call, 0.8, 8); }
void atan(const KernelCall& call) { floats<Atan>(call, 0.8, 8); }
void sinh(const KernelCall& call) { floats<Sinh>(call, 1, 10); }
void cosh(const KernelCall& call) { floats<Cosh>(call, 0.8, 10); }
void asinh(const KernelCall& call) { floats<Asinh>(call, 1.5, 12); }
void acosh(const KernelCall& call) { floats<Acosh>(call, 1.2, 12); }
void atanh(const KernelCall& call) { floats<Atanh>(call, 1.2, 12); }
void erf(const KernelCall& call) { floats<Erf>(call, 0.8, 10); }
void erfc(const KernelCall& call) { floats<Erfc>(call, 1, 15); }
void erfinv(const KernelCall& call) { floats<Erfinv>(call, 1.5, 150); }
void lgamma(const KernelCall& call) { floats<Lgamma>(call, 2, 30); }
void digamma(const KernelCall& call) { floats<Digamma>(call, 2, 40); }
void polygamma(const KernelCall& call) {
  floats(call, 200, 200, Polygamma{static_cast<int>(call.attributes<PolygammaAttrs>().n)});
}
void reciprocal(const KernelCall& call) { floats<Reciprocal>(call, 0.5, 1); }
void frac(const KernelCall& call) { floats<Frac>(call, 0.5, 1); }

void floor(const KernelCall& call) { numbers<Floor>(call); }
void ceil(const KernelCall& call) { numbers<Ceil>(call); }
void round(const KernelCall& call) { numbers<Round>(call); }
void trunc(const KernelCall& call) { numbers<Trunc>(call); }

void isnan(const KernelCall& call) { to_mask<IsNan>(call); }
void isinf(const KernelCall& call) { to_mask<IsInf>(call); }
void isfinite(const KernelCall& call) { to_mask<IsFinite>(call); }

void clamp(const KernelCall& call) {
  const auto& a = call.attributes<ClampAttrs>();
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const T low = Cast<T>{}(a.min), high = Cast<T>{}(a.max);
    map<T, T>(call, Clamp<T>{low < high ? low : high, high});
  });
}

void nan_to_num(const KernelCall& call) {
  const auto& a = call.attributes<NanToNumAttrs>();
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, NanToNum<T>{static_cast<T>(a.nan), static_cast<T>(a.posinf), static_cast<T>(a.neginf)});
  });
}

}  // namespace tapedeck::kernels::cpu
