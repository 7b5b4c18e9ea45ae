// Elements of the operands of products, in the type in which they are summed: f32 for f32, f16 and bf16, otherwise their own.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/scalar.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// Integers are computed as unsigned numbers, so that overflow wraps around.
template <class Sum>
TAPEDECK_DEVICE Sum multiply_add(Sum a, Sum b, Sum c) {
  if constexpr (std::is_floating_point_v<Sum>)
    return std::fma(a, b, c);
  else
    return a * b + c;
}

// Element `at` of an operand, in the type in which products are summed.
template <class Sum>
TAPEDECK_DEVICE Sum load_number(const void* data, DType dtype, std::int64_t at) {
  return load<std::conditional_t<std::is_same_v<Sum, float>, Real, Sum>>(data, dtype, at);
}
template <class Sum>
TAPEDECK_DEVICE void store_number(void* data, DType dtype, std::int64_t at, Sum value) {
  store<std::conditional_t<std::is_same_v<Sum, float>, Real, Sum>>(data, dtype, at, value);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
