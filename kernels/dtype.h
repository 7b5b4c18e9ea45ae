// The element types. f16 and bf16 only store numbers: kernels compute with them in f32 (half.h).
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace tapedeck
