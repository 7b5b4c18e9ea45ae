// f16 and bf16 store numbers; arithmetic happens in f32. Conversions round to nearest even, and keep infinities and NaN.
//
// A kernel without an f16 or bf16 version runs in f32 on converted operands: the call then names run_in_f32 as its kernel, and
// the real kernel stands in KernelCall::f32_kernel. The converted operands lie in the call's workspace, so a plan counts them.
#pragma once

#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/scalar.h>

#include <cstdint>

namespace tapedeck::kernels {

constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

// The bits of one half-precision number. The two types have the same width but different formats.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

TAPEDECK_HD inline float to_f32(F16 h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  // One product adds 112 to the exponent, and also turns denormal halves into normal floats.
  const float scaled = bits_float(rest << 13) * 5.192296858534828e33f;  // 2^112
  const std::uint32_t magnitude = rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : float_bits(scaled);
  return bits_float(sign | magnitude);
}

TAPEDECK_HD inline float to_f32(Bf16 h) { return bits_float(static_cast<std::uint32_t>(h.bits) << 16); }

TAPEDECK_HD inline F16 to_f16(float x) {
  const std::uint32_t u = float_bits(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
  // A magnitude below 2^-14 becomes a denormal half: the addition of 1/2 moves its bits to the bottom of the float and rounds.
  const std::uint32_t small = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t odd = magnitude >> 13 & 1u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  std::uint32_t h = magnitude < 0x38800000u ? small : normal;
  h = magnitude >= 0x477ff000u ? 0x7c00u : h;  // 65520 and above round to infinity
  h = magnitude > 0x7f800000u ? 0x7e00u : h;   // NaN
  return {static_cast<std::uint16_t>(sign | h)};
}

TAPEDECK_HD inline Bf16 to_bf16(float x) {
  const std::uint32_t u = float_bits(x);
  const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return {static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u | (u >> 16 & 0x8000u) : rounded)};
}

// The bytes of workspace for the f32 copy of one operand or result of n elements.
constexpr std::int64_t half_scratch(std::int64_t n) { return (n * 4 + 63) / 64 * 64; }

// Runs call.f32_kernel in f32. The workspace holds the f32 copies of all half-precision operands and results, in order, each of
// half_scratch(n) bytes; the workspace of the f32 kernel follows.
void run_in_f32(const KernelCall& call);

}  // namespace tapedeck::kernels
