// From an element type at run time to the type for which a kernel is compiled. All rooms of kernels/cuda use these functions. A
// type that a kernel does not support is reported in the call.
//
//   for_wide_floats      float, double: for kernels whose halves are converted first
//   for_floats           float, double, F16, Bf16
//   for_numbers          float, double, std::int32_t, std::int64_t, std::uint8_t; a bool counts as u8
//   for_stored           all of these
//   for_wide_numbers     float, double, or Integer: i32, i64 or u8, which the kernel tells apart while it runs
//   for_reals            double, or Real: f32, f16 or bf16 likewise
//   for_all_numbers      double, Real or Integer
//   for_element_widths   the unsigned integer that is as wide as an element
//   for_width            the unsigned integer of so many bytes, or Vec16
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/half.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

struct Real {};     // f32, f16 or bf16
struct Integer {};  // i32, i64 or u8; a bool counts as u8

// 16 bytes of neighbouring elements, for kernels that only move bytes.
struct alignas(16) Vec16 {
  std::uint64_t low, high;
};

using cpu::unsupported;

// f32, f16 or bf16: the types that are computed in f32.
inline bool is_real(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }

template <class F>
void for_wide_floats(const KernelCall& call, DType dtype, const F& f) {
  cpu::for_floats(call, dtype, f);
}

template <class F>
void for_floats(const KernelCall& call, DType dtype, const F& f) {
  if (dtype == DType::f16) return f(F16{});
  if (dtype == DType::bf16) return f(Bf16{});
  cpu::for_floats(call, dtype, f);
}

template <class F>
void for_numbers(const KernelCall& call, DType dtype, const F& f) {
  cpu::for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, f);
}

template <class F>
void for_stored(const KernelCall& call, DType dtype, const F& f) {
  if (is_half(dtype)) return for_floats(call, dtype, f);
  for_numbers(call, dtype, f);
}

template <class F>
void for_wide_numbers(const KernelCall& call, DType dtype, const F& f) {
  if (is_floating(dtype)) return for_wide_floats(call, dtype, f);
  f(Integer{});
}

template <class F>
void for_reals(const KernelCall& call, DType dtype, const F& f) {
  if (is_real(dtype)) return f(Real{});
  if (dtype == DType::f64) return f(double{});
  unsupported(call, dtype);
}

// Refuses a bool.
template <class F>
void for_all_numbers(const KernelCall& call, DType dtype, const F& f) {
  if (is_floating(dtype)) return for_reals(call, dtype, f);
  if (dtype == DType::boolean) return unsupported(call, dtype);
  f(Integer{});
}

template <class F>
void for_element_widths(DType dtype, const F& f) {
  cpu::for_widths(dtype, f);
}

// REQUIRES: bytes is 1, 2, 4, 8 or 16.
template <class F>
void for_width(std::size_t bytes, const F& f) {
  if (bytes == sizeof(Vec16)) return f(Vec16{});
  cpu::for_width(static_cast<std::int64_t>(bytes), f);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
