// The element types. f16 and bf16 only store numbers: kernels compute with them in f32 (half.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tapedeck {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean };
inline constexpr int kDTypeCount = 8;

constexpr std::size_t dtype_size(DType d) {
  constexpr std::size_t sizes[kDTypeCount] = {4, 8, 2, 2, 4, 8, 1, 1};
  return sizes[static_cast<int>(d)];
}

// The name of a type in the graph text: "f32", ..., "bool".
constexpr const char* dtype_name(DType d) {
  constexpr const char* names[kDTypeCount] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  return names[static_cast<int>(d)];
}

constexpr bool is_floating(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16; }

// Whether T is the C++ type of the elements: unsigned char for u8 and bool, and std::uint16_t for the bits of f16 and bf16.
template <class T>
constexpr bool dtype_holds(DType d) {
  if constexpr (std::is_same_v<T, float>) return d == DType::f32;
  if constexpr (std::is_same_v<T, double>) return d == DType::f64;
  if constexpr (std::is_same_v<T, std::uint16_t>) return d == DType::f16 || d == DType::bf16;
  if constexpr (std::is_same_v<T, std::int32_t>) return d == DType::i32;
  if constexpr (std::is_same_v<T, long> || std::is_same_v<T, long long>) return sizeof(T) == 8 && d == DType::i64;
  if constexpr (std::is_same_v<T, unsigned char>) return d == DType::u8 || d == DType::boolean;
  return false;
}

// The C++ type of the elements, as one writes it.
constexpr const char* element_name(DType d) {
  constexpr const char* names[kDTypeCount] = {"float",        "double",       "std::uint16_t", "std::uint16_t",
                                              "std::int32_t", "std::int64_t", "unsigned char", "unsigned char"};
  return names[static_cast<int>(d)];
}

}  // namespace tapedeck
