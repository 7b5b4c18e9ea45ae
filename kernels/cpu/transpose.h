// Transposes a block of a matrix: to[i * to_stride + j] = from[j * from_stride + i]. Elements of four bytes are transposed in
// registers, 8 x 8 elements at a time.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tapedeck::kernels::cpu {
namespace detail {

using Eight = std::uint32_t __attribute__((vector_size(32)));

// Transposes the 8 x 8 elements of r in three steps: pairs of rows, groups of four, halves.
inline void transpose_eight(Eight (&r)[8]) {
  Eight pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

template <class T>
void transpose_small(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) to[i * to_stride + j] = from[j * from_stride + i];
}

// 8 x 8 elements in full, or what is left of them at an edge.
template <class T>
void transpose_cell(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                    std::int64_t cols) {
  if constexpr (sizeof(T) == 4) {
    if (rows == 8 && cols == 8) {
      Eight block[8];  // in registers: the loops below are unrolled
      TAPEDECK_UNROLL
      for (int k = 0; k < 8; ++k) std::memcpy(&block[k], from + k * from_stride, 32);
      transpose_eight(block);
      TAPEDECK_UNROLL
      for (int k = 0; k < 8; ++k) std::memcpy(to + k * to_stride, &block[k], 32);
      return;
    }
  }
  transpose_small(from, from_stride, to, to_stride, rows, cols);
}

}  // namespace detail

// `rows` and `cols` are the sizes of the result. A cache line of the source is read whole, and the next one of its row is asked
// for: rows of a large matrix lie so far apart that a processor does not foresee them.
template <class T>
void transpose(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t step = 8, line = std::max<std::int64_t>(step, 64 / static_cast<std::int64_t>(sizeof(T)));
  for (std::int64_t first = 0; first < rows; first += line)
    for (std::int64_t j = 0; j < cols; j += step) {
      const T* source = from + j * from_stride;
      const std::int64_t some_cols = std::min(step, cols - j);
      if (first + line < rows)
        for (std::int64_t k = 0; k < some_cols; ++k) __builtin_prefetch(source + k * from_stride + first + line);
      for (std::int64_t i = first; i < std::min(first + line, rows); i += step)
        detail::transpose_cell(source + i, from_stride, to + i * to_stride + j, to_stride, std::min(step, rows - i), some_cols);
    }
}

}  // namespace tapedeck::kernels::cpu
