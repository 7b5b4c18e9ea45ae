// From an element type at run time to a C++ type: one switch per kernel call. A kernel reports a fault for a type that it does
// not support. Users never see this fault, because type inference refuses such a type earlier.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

// Pragmas in front of loops.
// TAPEDECK_INDEPENDENT: an output either equals an input element for element or does not overlap it, so the compiler may
// vectorise without a check.
// TAPEDECK_SHORT_LOOP: a loop of a few fixed steps that should vectorise. Without the pragma gcc unrolls it into scalar code.
// TAPEDECK_UNROLL: a loop of at most 8 fixed steps inside a loop that should vectorise.
#if defined(__GNUC__) && !defined(__clang__)
#define TAPEDECK_INDEPENDENT _Pragma("GCC ivdep")
#define TAPEDECK_SHORT_LOOP _Pragma("GCC unroll 1")
#define TAPEDECK_UNROLL _Pragma("GCC unroll 8")
#else
#define TAPEDECK_INDEPENDENT
#define TAPEDECK_SHORT_LOOP
#define TAPEDECK_UNROLL
#endif

namespace tapedeck::kernels::cpu {

// Reports an element type that the kernel does not support.
inline void unsupported(const KernelCall& call, DType dtype) {
  call.fault->report("element type not supported by this kernel", static_cast<std::int64_t>(dtype));
}

// Calls f(T{}) for f32 and f64.
template <class F>
void for_floats(const KernelCall& call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    default:
      return unsupported(call, dtype);
  }
}

// Calls f(T{}) for i32, i64 and u8.
template <class F>
void for_integers(const KernelCall& call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
      return f(std::uint8_t{});
    default:
      return unsupported(call, dtype);
  }
}

// Calls f(T{}) for f32, f64, i32, i64 and u8.
template <class F>
void for_numbers(const KernelCall& call, DType dtype, F&& f) {
  if (is_floating(dtype)) return cpu::for_floats(call, dtype, f);  // kernels/cuda has functions of these names too
  cpu::for_integers(call, dtype, f);
}

// Calls f(U{}) with the unsigned integer of so many bytes: 1, 2, 4 or 8.
template <class F>
void for_width(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

// Calls f(U{}) with the unsigned integer that is as wide as an element, for kernels that only move bytes. Accepts every type.
template <class F>
void for_widths(DType dtype, F&& f) {
  cpu::for_width(dtype_size(dtype), f);
}

}  // namespace tapedeck::kernels::cpu
