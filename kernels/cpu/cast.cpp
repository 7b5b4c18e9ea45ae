// Conversions between all six types that kernels compute in.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class From>
void cast_from(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (to == DType::boolean) return map<std::uint8_t, From>(call, ToBool{});
  for_numbers(call, to, [&](auto t) {
    using To = decltype(t);
    map<To, From>(call, Cast<To>{});
  });
}

void cast_from_bool(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (to == DType::boolean) return map<std::uint8_t, std::uint8_t>(call, ToBool{});
  for_numbers(call, to, [&](auto t) {
    using To = decltype(t);
    map<To, std::uint8_t>(call, FromBool<To>{});
  });
}

}  // namespace

void cast(const KernelCall& call) {
  const DType from = call.inputs[0].dtype;
  if (from == DType::boolean) return cast_from_bool(call);
  for_numbers(call, from, [&](auto t) { cast_from<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
