// Casts between all types. A cast between f32, f16 and bf16 takes several elements at a time. For the other casts
// there is one kernel per type of the result; it learns the type of the operand at run time.
#pragma once

#include <tapedeck/kernels/cuda/elementwise/families.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

struct Identity {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    return x;
  }
};

struct Bool {};  // the type of the result, where u8 would not do: any nonzero number becomes 1

template <class To, class From>
TAPEDECK_DEVICE void cast_one(const Walk<2>& walk, const std::int64_t (&at)[2]) {
  const Value<From> x = load<From>(walk.data[1], walk.dtypes[1], at[1]);
  if constexpr (std::is_same_v<To, Bool>)
    store<std::uint8_t>(walk.data[0], walk.dtypes[0], at[0], ToBool{}(x));
  else
    store<To>(walk.data[0], walk.dtypes[0], at[0], Cast<Value<To>>{}(x));
}

// A boolean operand counts as 0 or 1, whatever its byte holds.
template <class To>
TAPEDECK_DEVICE void cast_bool(const Walk<2>& walk, const std::int64_t (&at)[2]) {
  const std::uint8_t x = load<std::uint8_t>(walk.data[1], walk.dtypes[1], at[1]);
  if constexpr (std::is_same_v<To, Bool>)
    store<std::uint8_t>(walk.data[0], walk.dtypes[0], at[0], ToBool{}(x));
  else
    store<To>(walk.data[0], walk.dtypes[0], at[0], FromBool<Value<To>>{}(x));
}

template <class To>
TAPEDECK_KERNEL void cast_kernel(const Walk<2> walk) {
  std::int64_t at[2];
  for (std::int64_t i = thread_index(); i < walk.n; i += thread_count()) {
    locate(walk, i, at);
    switch (walk.dtypes[1]) {
      case DType::f64:
        cast_one<To, double>(walk, at);
        break;
      case DType::i32:
      case DType::i64:
      case DType::u8:
        cast_one<To, Integer>(walk, at);
        break;
      case DType::boolean:
        cast_bool<To>(walk, at);
        break;
      default:
        cast_one<To, Real>(walk, at);
        break;
    }
  }
}

template <class To>
void cast_to(const KernelCall& call) {
  for_parts(make_walk<2>(call), [&](const Walk<2>& part) { launch<Walk<2>>(call, &cast_kernel<To>, for_items(part.n), part); });
}

void cast(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  if (is_real(to) && is_real(call.inputs[0].dtype)) return map<Real, Real>(call, Identity{});
  if (to == DType::boolean) return cast_to<Bool>(call);
  if (to == DType::i32) return cast_to<std::int32_t>(call);
  if (to == DType::i64) return cast_to<std::int64_t>(call);
  if (to == DType::u8) return cast_to<std::uint8_t>(call);
  for_reals(call, to, [&](auto t) { cast_to<decltype(t)>(call); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
