// The elements of operands in the memory of the device: how a kernel loads and stores them, one at a time or several by one
// access.
//
// A kernel is compiled for few element types. `Real` stands for f32, f16 and bf16 together: the type in memory is known at run
// time, every thread of a launch takes the same branch, and the arithmetic is in f32. So one compiled kernel serves three
// types, and a half gives the bits that run_in_f32 (half.h) gives on the CPU. `Integer` stands for i32, i64 and u8 in the same
// way. Its arithmetic is in i64, which wraps around to the same bits when it is stored.
#pragma once

#include <tapedeck/kernels/cuda/dispatch.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

template <class T>
struct ValueOf {
  using type = T;
};
template <>
struct ValueOf<Real> {
  using type = float;
};
template <>
struct ValueOf<Integer> {
  using type = std::int64_t;
};
// The type in which a kernel computes with elements of type T.
template <class T>
using Value = typename ValueOf<T>::type;

// The conversions of the halves. The device has instructions for them; the branch of the host gives the same bits, but for the
// payload and the sign of a NaN.
TAPEDECK_DEVICE float wide(F16 h) {
#ifdef __CUDA_ARCH__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
#else
  return to_f32(h);
#endif
}
TAPEDECK_DEVICE float wide(Bf16 h) { return to_f32(h); }
TAPEDECK_DEVICE F16 narrow(float x, F16) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return to_f16(x);
#endif
}
TAPEDECK_DEVICE Bf16 narrow(float x, Bf16) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return to_bf16(x);
#endif
}
// Two halves in a word: the first one in the low bits, where it lies in memory.
TAPEDECK_DEVICE std::uint32_t narrow_two(float first, float second, F16) {
#ifdef __CUDA_ARCH__
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return static_cast<std::uint32_t>(to_f16(second).bits) << 16 | to_f16(first).bits;
#endif
}
TAPEDECK_DEVICE std::uint32_t narrow_two(float first, float second, Bf16) {
#ifdef __CUDA_ARCH__
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return static_cast<std::uint32_t>(to_bf16(second).bits) << 16 | to_bf16(first).bits;
#endif
}
template <class T>
TAPEDECK_DEVICE T wide(T x) {
  return x;
}
template <class T>
TAPEDECK_DEVICE T narrow(T x, T) {
  return x;
}

// ---- elements of a type that is known when the kernel is compiled: halves are read to f32, and rounded when they are written
// ----

template <class S>
struct ComputeType {
  using type = S;
};
template <>
struct ComputeType<F16> {
  using type = float;
};
template <>
struct ComputeType<Bf16> {
  using type = float;
};
template <>
struct ComputeType<Integer> {
  using type = std::int64_t;
};
// The type in which a number stored as S is computed with.
template <class S>
using Compute = typename ComputeType<S>::type;

template <class S>
TAPEDECK_DEVICE Compute<S> read(const S& x) {
  return wide(x);
}
template <class S>
TAPEDECK_DEVICE S written(Compute<S> x) {
  return narrow(x, S{});
}

// ---- elements whose type is known at run time ----

// The value of the bits of f16 or bf16.
TAPEDECK_DEVICE float half_value(DType dtype, std::uint16_t bits) {
  return dtype == DType::f16 ? wide(F16{bits}) : wide(Bf16{bits});
}

// Element `at` of an operand. `dtype` is read for Real and Integer only.
template <class T>
TAPEDECK_DEVICE Value<T> load(const void* data, DType dtype, std::int64_t at) {
  if constexpr (std::is_same_v<T, Real>) {
    if (dtype != DType::f32) return half_value(dtype, static_cast<const std::uint16_t*>(data)[at]);
    return static_cast<const float*>(data)[at];
  } else if constexpr (std::is_same_v<T, Integer>) {
    if (dtype == DType::i32) return static_cast<const std::int32_t*>(data)[at];
    if (dtype == DType::i64) return static_cast<const std::int64_t*>(data)[at];
    return static_cast<const std::uint8_t*>(data)[at];
  } else {
    return static_cast<const T*>(data)[at];
  }
}
template <class T>
TAPEDECK_DEVICE void store(void* data, DType dtype, std::int64_t at, Value<T> x) {
  if constexpr (std::is_same_v<T, Real>) {
    if (dtype == DType::f16)
      static_cast<F16*>(data)[at] = narrow(x, F16{});
    else if (dtype == DType::bf16)
      static_cast<Bf16*>(data)[at] = narrow(x, Bf16{});
    else
      static_cast<float*>(data)[at] = x;
  } else if constexpr (std::is_same_v<T, Integer>) {
    if (dtype == DType::i32)
      static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(x);
    else if (dtype == DType::i64)
      static_cast<std::int64_t*>(data)[at] = x;
    else
      static_cast<std::uint8_t*>(data)[at] = static_cast<std::uint8_t>(x);
  } else {
    static_cast<T*>(data)[at] = x;
  }
}

// ---- several neighbouring elements by one access ----

// The memory must be aligned to kCount elements. Integer has no packs.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T element[kCount];
};

template <class T, int kCount>
TAPEDECK_DEVICE void load_as(const void* data, std::int64_t at, Value<T> (&x)[kCount]) {
  const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(static_cast<const T*>(data) + at);
  for (int i = 0; i < kCount; ++i) x[i] = pack.element[i];
}
// Halves are moved as words of two, because an access of the device has at most four parts.
template <int kCount>
TAPEDECK_DEVICE void load_halves(const void* data, DType dtype, std::int64_t at, float (&x)[kCount]) {
  static_assert(kCount % 2 == 0);
  using Words = Pack<std::uint32_t, kCount / 2>;
  const auto pack = *reinterpret_cast<const Words*>(static_cast<const std::uint16_t*>(data) + at);
  for (int i = 0; i < kCount; ++i) x[i] = half_value(dtype, static_cast<std::uint16_t>(pack.element[i / 2] >> i % 2 * 16));
}
template <class T, int kCount>
TAPEDECK_DEVICE void store_as(void* data, std::int64_t at, const T (&x)[kCount]) {
  Pack<T, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.element[i] = x[i];
  *reinterpret_cast<Pack<T, kCount>*>(static_cast<T*>(data) + at) = pack;
}
template <class H, int kCount>
TAPEDECK_DEVICE void store_halves(void* data, std::int64_t at, const float (&x)[kCount]) {
  static_assert(kCount % 2 == 0);
  Pack<std::uint32_t, kCount / 2> pack;
  for (int i = 0; i < kCount; i += 2) pack.element[i / 2] = narrow_two(x[i], x[i + 1], H{});
  *reinterpret_cast<Pack<std::uint32_t, kCount / 2>*>(static_cast<H*>(data) + at) = pack;
}

template <class T, int kCount>
TAPEDECK_DEVICE void load_pack(const void* data, DType dtype, std::int64_t at, Value<T> (&x)[kCount]) {
  if constexpr (std::is_same_v<T, Real>) {
    if (dtype != DType::f32)
      load_halves(data, dtype, at, x);
    else
      load_as<float>(data, at, x);
  } else {
    load_as<T>(data, at, x);
  }
}
template <class T, int kCount>
TAPEDECK_DEVICE void store_pack(void* data, DType dtype, std::int64_t at, const Value<T> (&x)[kCount]) {
  if constexpr (std::is_same_v<T, Real>) {
    if (dtype == DType::f16)
      store_halves<F16>(data, at, x);
    else if (dtype == DType::bf16)
      store_halves<Bf16>(data, at, x);
    else
      store_as<float>(data, at, x);
  } else {
    store_as<T>(data, at, x);
  }
}

inline bool is_aligned(const void* data, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(data) % bytes == 0; }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
