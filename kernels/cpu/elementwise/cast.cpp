// Casts between all types. A cast to or from f16 or bf16 goes through f32.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class H>
struct FromHalf {
  float operator()(std::uint16_t x) const { return to_f32(H{x}); }
};
struct IntoF16 {
  std::uint16_t operator()(float x) const { return to_f16(x).bits; }
};
struct IntoBf16 {
  std::uint16_t operator()(float x) const { return to_bf16(x).bits; }
};

// The composition of two functors: x -> F(G(x)).
template <class F, class G>
struct Then {
  template <class From>
  auto operator()(From x) const {
    return F{}(G{}(x));
  }
};

// Casts any type to f16 or bf16; Load converts an element to f32 first.
template <class From, class Load>
void cast_to_half(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::f16)
    map<std::uint16_t, From>(call, Then<IntoF16, Load>{});
  else
    map<std::uint16_t, From>(call, Then<IntoBf16, Load>{});
}

template <class H>
void cast_from_half(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (is_half(to)) return cast_to_half<std::uint16_t, FromHalf<H>>(call);
  if (to == DType::boolean) return map<std::uint8_t, std::uint16_t>(call, Then<ToBool, FromHalf<H>>{});
  for_numbers(call, to, [&](auto t) {
    using To = decltype(t);
    map<To, std::uint16_t>(call, Then<Cast<To>, FromHalf<H>>{});
  });
}

template <class From>
void cast_from(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (to == DType::boolean) return map<std::uint8_t, From>(call, ToBool{});
  if (is_half(to)) return cast_to_half<From, Cast<float>>(call);
  for_numbers(call, to, [&](auto t) {
    using To = decltype(t);
    map<To, From>(call, Cast<To>{});
  });
}

void cast_from_bool(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (to == DType::boolean) return map<std::uint8_t, std::uint8_t>(call, ToBool{});
  if (is_half(to)) return cast_to_half<std::uint8_t, FromBool<float>>(call);
  for_numbers(call, to, [&](auto t) {
    using To = decltype(t);
    map<To, std::uint8_t>(call, FromBool<To>{});
  });
}

}  // namespace

void cast(const KernelCall& call) {
  const DType from = call.inputs[0].dtype;
  if (from == DType::boolean) return cast_from_bool(call);
  if (from == DType::f16) return cast_from_half<F16>(call);
  if (from == DType::bf16) return cast_from_half<Bf16>(call);
  for_numbers(call, from, [&](auto t) { cast_from<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
