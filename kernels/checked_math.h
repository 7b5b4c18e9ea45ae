// Sums and products of sizes that come from outside: from files, attributes and shapes. The sizes of one type multiply without
// overflow (engine/ir/type.h); sizes of several types, and attributes, need these functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

namespace tapedeck {

// The exact result, or nothing if it does not fit an i64.
constexpr std::optional<std::int64_t> checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return {};
  return sum;
}
constexpr std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return {};
  return product;
}

// For byte counts that are compared with a limit afterwards: the exact result, or kTooMany if it does not fit. REQUIRES: no
// number is negative.
inline constexpr std::int64_t kTooMany = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t limited_sum(std::initializer_list<std::int64_t> numbers) {
  std::int64_t sum = 0;
  for (const std::int64_t n : numbers) sum = checked_sum(sum, n).value_or(kTooMany);
  return sum;
}
constexpr std::int64_t limited_product(std::initializer_list<std::int64_t> numbers) {
  std::int64_t product = 1;
  for (const std::int64_t n : numbers)
    if (n == 0) return 0;
  for (const std::int64_t n : numbers) product = checked_product(product, n).value_or(kTooMany);
  return product;
}

}  // namespace tapedeck
