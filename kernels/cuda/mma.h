// Products of halves by the tensor cores: a warp multiplies a tile of 16 x 16 halves by one of 16 x 8 and adds the product to
// 16 x 8 sums in f32. The lanes of the warp share the tiles; lane l, with g = l / 4 and t = l % 4, holds (PTX ISA,
// mma.m16n8k16):
//
//   LeftTile    word 0: row g, columns 2t and 2t+1      word 1: row g+8, the same columns
//               word 2: row g, columns 2t+8 and 2t+9    word 3: row g+8, the same columns
//   RightTile   word 0: rows 2t and 2t+1 of column g    word 1: rows 2t+8 and 2t+9 of column g
//   SumTile     at 0 and 1: row g, columns 2t and 2t+1  at 2 and 3: row g+8, the same columns
//
// A word holds two halves, the first one in the low bits. All lanes of a warp call each function together. The host's branch
// computes the same from the same tiles with shuffles, for the emulator.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>
#include <tapedeck/kernels/half.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

struct LeftTile {
  std::uint32_t word[4];
};
struct RightTile {
  std::uint32_t word[2];
};
struct SumTile {
  float at[4];
};

#ifdef __CUDACC__

// sums += left times right.
template <class Half>
TAPEDECK_DEVICE void add_product(SumTile& sums, const LeftTile& left, const RightTile& right) {
  if constexpr (std::is_same_v<Half, F16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
        : "r"(left.word[0]), "r"(left.word[1]), "r"(left.word[2]), "r"(left.word[3]), "r"(right.word[0]), "r"(right.word[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
        : "r"(left.word[0]), "r"(left.word[1]), "r"(left.word[2]), "r"(left.word[3]), "r"(right.word[0]), "r"(right.word[1]));
}

// Reads four matrices of 8 x 8 halves from shared memory. Lane l gives the address of row l % 8 of matrix l / 8, which is
// aligned to 16 bytes. words[j] of lane l are the elements 2t and 2t+1 of row g of matrix j.
TAPEDECK_DEVICE void load_matrices(std::uint32_t (&words)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
// The same, but words[j] are the elements of the rows 2t and 2t+1 in column g of matrix j.
TAPEDECK_DEVICE void load_matrices_turned(std::uint32_t (&words)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

#else

template <class Half>
TAPEDECK_DEVICE float half_of_word(std::uint32_t word, int i) {
  return wide(Half{static_cast<std::uint16_t>(word >> i * 16)});
}

template <class Half>
TAPEDECK_DEVICE void add_product(SumTile& sums, const LeftTile& left, const RightTile& right) {
  const unsigned lane = lane_of_warp(), g = lane / 4, t = lane % 4;
  for (int half = 0; half < 2; ++half)
    for (unsigned of = 0; of < 4; ++of) {  // the lanes that hold a row of the left tile, or a column of the right one
      const std::uint32_t upper = shuffle(left.word[2 * half], g * 4 + of),
                          lower = shuffle(left.word[2 * half + 1], g * 4 + of);
      const std::uint32_t first = shuffle(right.word[half], 2 * t * 4 + of);
      const std::uint32_t second = shuffle(right.word[half], (2 * t + 1) * 4 + of);
      for (int i = 0; i < 2; ++i) {
        sums.at[0] = std::fma(half_of_word<Half>(upper, i), half_of_word<Half>(first, i), sums.at[0]);
        sums.at[1] = std::fma(half_of_word<Half>(upper, i), half_of_word<Half>(second, i), sums.at[1]);
        sums.at[2] = std::fma(half_of_word<Half>(lower, i), half_of_word<Half>(first, i), sums.at[2]);
        sums.at[3] = std::fma(half_of_word<Half>(lower, i), half_of_word<Half>(second, i), sums.at[3]);
      }
    }
}

TAPEDECK_DEVICE void load_matrices(std::uint32_t (&words)[4], const std::uint16_t* row) {
  const unsigned lane = lane_of_warp(), g = lane / 4, t = lane % 4;
  for (unsigned j = 0; j < 4; ++j) {
    const std::uint16_t* const from = shuffle(row, j * 8 + g) + 2 * t;
    words[j] = static_cast<std::uint32_t>(from[1]) << 16 | from[0];
  }
}
TAPEDECK_DEVICE void load_matrices_turned(std::uint32_t (&words)[4], const std::uint16_t* row) {
  const unsigned lane = lane_of_warp(), g = lane / 4, t = lane % 4;
  for (unsigned j = 0; j < 4; ++j) {
    const std::uint16_t first = shuffle(row, j * 8 + 2 * t)[g], second = shuffle(row, j * 8 + 2 * t + 1)[g];
    words[j] = static_cast<std::uint32_t>(second) << 16 | first;
  }
}

#endif

// ---- tiles of a matrix in shared memory, whose rows lie `pitch` halves apart ----
//
// A pitch of 8 more than a multiple of 16 puts the eight rows that are read together into different banks.

// The offset that a lane reads for the four quarters of 16 x 16 halves: down first, as in the words of a LeftTile.
TAPEDECK_DEVICE int quarters_down(int pitch) {
  const int lane = static_cast<int>(lane_of_warp());
  return lane % 16 * pitch + lane / 16 * 8;
}
// The same, but across first.
TAPEDECK_DEVICE int quarters_across(int pitch) {
  const int lane = static_cast<int>(lane_of_warp());
  return (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8;
}

// `at` is the corner of 16 x 16 halves, plus quarters_down().
TAPEDECK_DEVICE LeftTile left_tile(const std::uint16_t* at) {
  LeftTile tile;
  load_matrices(tile.word, at);
  return tile;
}

// Two tiles, which lie side by side.
struct RightTiles {
  RightTile first, second;
};

// The 16 x 16 halves themselves. `at` is their corner, plus quarters_down().
TAPEDECK_DEVICE RightTiles right_tiles(const std::uint16_t* at) {
  std::uint32_t words[4];
  load_matrices_turned(words, at);
  return {{{words[0], words[1]}}, {{words[2], words[3]}}};
}
// The transpose of the 16 x 16 halves. `at` is their corner, plus quarters_across().
TAPEDECK_DEVICE RightTiles right_tiles_turned(const std::uint16_t* at) {
  std::uint32_t words[4];
  load_matrices(words, at);
  return {{{words[0], words[1]}}, {{words[2], words[3]}}};
}

// Two tiles of sums side by side, rounded to halves: a product becomes an operand in the lanes that hold it.
template <class Half>
TAPEDECK_DEVICE LeftTile left_tile_of(const SumTile& first, const SumTile& second) {
  return {{narrow_two(first.at[0], first.at[1], Half{}), narrow_two(first.at[2], first.at[3], Half{}),
           narrow_two(second.at[0], second.at[1], Half{}), narrow_two(second.at[2], second.at[3], Half{})}};
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
