// f16 and bf16 are storage: arithmetic is f32. Conversions round to nearest even, and keep infinities and NaN.
//
// A kernel that does not take them itself is run in f32 on converted operands: run_in_f32 is the kernel then, and the kernel
// proper stands in the call. Scratch for the conversions comes out of the call's workspace, so a plan knows it.
#pragma once

#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/scalar.h>

#include <cstdint>

namespace tapedeck::kernels {

constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

// Half precision as bits; the two types share a width and nothing else.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

TAPEDECK_HD inline float to_f32(F16 h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  // Normal numbers: move the exponent by 112 with a product, which also turns denormals into normal floats.
  const float scaled = bits_float(rest << 13) * 5.192296858534828e33f;  // 2^112
  const std::uint32_t magnitude = rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : float_bits(scaled);
  return bits_float(sign | magnitude);
}

TAPEDECK_HD inline float to_f32(Bf16 h) { return bits_float(static_cast<std::uint32_t>(h.bits) << 16); }

TAPEDECK_HD inline F16 to_f16(float x) {
  const std::uint32_t u = float_bits(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
  // Below 2^-14 the result is denormal: adding 1/2 puts its bits at the bottom, rounded by the addition itself.
  const std::uint32_t small = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t odd = magnitude >> 13 & 1u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  std::uint32_t h = magnitude < 0x38800000u ? small : normal;
  h = magnitude >= 0x477ff000u ? 0x7c00u : h;  // at least 65520: infinity
  h = magnitude > 0x7f800000u ? 0x7e00u : h;   // NaN
  return {static_cast<std::uint16_t>(sign | h)};
}

TAPEDECK_HD inline Bf16 to_bf16(float x) {
  const std::uint32_t u = float_bits(x);
  const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return {static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u | (u >> 16 & 0x8000u) : rounded)};
}

// Bytes of scratch for one operand or result of n elements.
constexpr std::int64_t half_scratch(std::int64_t n) { return (n * 4 + 63) / 64 * 64; }

// Runs call.f32_kernel in f32. The workspace holds the converted half operands and results in order (half_scratch each), then
// the kernel's own.
void run_in_f32(const KernelCall& call);

}  // namespace tapedeck::kernels
