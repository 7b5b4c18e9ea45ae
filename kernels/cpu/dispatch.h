// From a run-time element type to a C++ type: one switch per kernel call. A type that a kernel does not compute in is a fault;
// type inference refuses it long before, so that users do not meet it.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

// Before loops. TAPEDECK_INDEPENDENT: an output equals an input element for element or overlaps none, so vectorise unchecked.
// TAPEDECK_SHORT_LOOP: a few fixed steps that should vectorise, where gcc would unroll them into scalars first.
#if defined(__GNUC__) && !defined(__clang__)
#define TAPEDECK_INDEPENDENT _Pragma("GCC ivdep")
#define TAPEDECK_SHORT_LOOP _Pragma("GCC unroll 1")
#else
#define TAPEDECK_INDEPENDENT
#define TAPEDECK_SHORT_LOOP
#endif

namespace tapedeck::kernels::cpu {

inline void unsupported(const KernelCall& call, DType dtype) {
  call.fault->report("element type not supported by this kernel", static_cast<std::int64_t>(dtype));
}

// f(T{}) for f32 f64.
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

// f(T{}) for f32 f64 i32 i64 u8.
template <class F>
void for_numbers(const KernelCall& call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
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

// f(U{}) for the unsigned integer as wide as an element: for kernels that only move bytes. Any type.
template <class F>
void for_widths(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
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

}  // namespace tapedeck::kernels::cpu
