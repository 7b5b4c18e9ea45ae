// Exponentials by the device's instruction, for results that are rounded to halves. The polynomial of scalar.h takes about
// twenty instructions, which cost more than the memory traffic of a half.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/scalar.h>

#include <cmath>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

// 2^x within two units of the last place; results below 2^-126 are 0.
TAPEDECK_DEVICE float quick_exp2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}

// e^x for a result that is stored as S. For halves its relative error grows with |x|, up to 2^-17 where the result is not 0.
template <class S>
TAPEDECK_DEVICE Compute<S> exp_for(Compute<S> x) {
  if constexpr (std::is_same_v<S, F16> || std::is_same_v<S, Bf16>)
    return quick_exp2(x * kLog2E);
  else
    return exp_of(x);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
