// Rows of f16 or bf16 numbers (H is F16 or Bf16) as f32 numbers, and back.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/half.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

using Half = std::uint16_t;  // the bits of an f16 or a bf16

// Number i behind the beginning of a view of type T, f16 or bf16.
template <class T>
T number_at(const View& v, std::int64_t i) {
  if (v.dtype == DType::f16) return static_cast<T>(to_f32(F16{v.as<Half>()[i]}));
  if (v.dtype == DType::bf16) return static_cast<T>(to_f32(Bf16{v.as<Half>()[i]}));
  return v.as<T>()[i];
}

template <class H>
void widen_row(const Half* from, std::int64_t step, std::int64_t n, float* to) {
  if (step == 1) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) to[j] = to_f32(H{from[j]});
  } else {
    for (std::int64_t j = 0; j < n; ++j) to[j] = to_f32(H{from[j * step]});
  }
}

inline void round_row(F16*, std::int64_t n, const float* from, Half* to) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t j = 0; j < n; ++j) to[j] = to_f16(from[j]).bits;
}
inline void round_row(Bf16*, std::int64_t n, const float* from, Half* to) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t j = 0; j < n; ++j) to[j] = to_bf16(from[j]).bits;
}
template <class H>
void round_row(std::int64_t n, const float* from, Half* to) {
  round_row(static_cast<H*>(nullptr), n, from, to);
}

}  // namespace tapedeck::kernels::cpu
