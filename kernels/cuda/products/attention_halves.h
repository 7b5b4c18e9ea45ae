// Attention of f16 and bf16 and its gradient share this: the products run on the tensor cores (mma.h).
//
// A block has one to four warps. Each warp keeps tiles of 16 rows (queries, or keys), and the block reads the other operand
// tile by tile into shared memory, one tile ahead. A product of rows is a matrix of scores whose sums lie in the lanes as an
// operand of the next product has to lie; so scores never leave the registers. Columns are padded with zeros to kSize.
#pragma once

#include <tapedeck/kernels/cuda/async_copies.h>
#include <tapedeck/kernels/cuda/mma.h>
#include <tapedeck/kernels/cuda/products/attention_call.h>
#include <tapedeck/kernels/cuda/quick_exp.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>

#include <cmath>
#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace halves {

inline constexpr int kMostWarps = 4;

constexpr int pitch_of(int columns) { return columns + 8; }

// ---- the rows of a block ----

// Blocks are small where there are few of them, so that they occupy all multiprocessors of a device.
inline unsigned warps_of_block_for(std::int64_t pairs, std::int64_t rows, int rows_of_warp) {
  constexpr std::int64_t kEnough = 256;
  unsigned warps = kMostWarps;
  const auto blocks = [&] { return pairs * ((rows + warps * rows_of_warp - 1) / (warps * rows_of_warp)); };
  while (warps > 1 && blocks() < kEnough) warps /= 2;
  return warps;
}

inline Launch launch_of(std::int64_t pairs, std::int64_t rows, unsigned warps, int rows_of_warp, std::size_t shared_bytes) {
  const std::int64_t of_block = static_cast<std::int64_t>(warps) * rows_of_warp;
  return {.blocks = pairs * ((rows + of_block - 1) / of_block),
          .threads = warps * kWarp,
          .shared_bytes = shared_bytes,
          .large_shared = true};
}

// The place of a block. The blocks of a pair follow each other; those with the most work come first.
struct BlockPlace {
  std::int64_t pair;
  int rows, first;  // of the block
  int first_of_warp;

  TAPEDECK_DEVICE BlockPlace(std::int64_t count, int rows_of_warp, bool last_first) {
    rows = static_cast<int>(blockDim.x / kWarp) * rows_of_warp;
    const unsigned tiles = static_cast<unsigned>((count + rows - 1) / rows), tile = blockIdx.x % tiles;
    pair = blockIdx.x / tiles;
    first = static_cast<int>(last_first ? tiles - 1 - tile : tile) * rows;
    first_of_warp = first + static_cast<int>(warp_of_block()) * rows_of_warp;
  }
};

// ---- tiles in shared memory ----

// The matrix of one pair.
struct HalfMatrix {
  const std::uint16_t* data;
  int rows, columns;
  bool packs;  // 16 bytes that begin at a multiple of eight columns are aligned

  TAPEDECK_DEVICE HalfMatrix(const void* all, std::int64_t pair, std::int64_t count, std::int64_t width)
      : data(static_cast<const std::uint16_t*>(all)), rows(static_cast<int>(count)), columns(static_cast<int>(width)) {
    packs = columns % 8 == 0 && reinterpret_cast<std::uintptr_t>(all) % 16 == 0;
    if (data) data += pair * count * width;
  }
};

// Begins to read `rows` rows of a matrix, from row `first` on. Rows beyond the end become zeros. A thread has one pack of eight
// columns in some of the rows.
template <int kSize>
TAPEDECK_DEVICE void begin_tile(AsyncCopies& copies, std::uint16_t* tile, const HalfMatrix& from, int first, int rows) {
  constexpr int kPacks = kSize / 8;
  static_assert(static_cast<int>(kWarp) % kPacks == 0);
  const int thread = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x) / kPacks, column = thread % kPacks * 8;
  const int count = column < from.columns ? from.rows - first : 0;  // rows from which this thread reads
  std::uint16_t* to = tile + thread / kPacks * pitch_of(kSize) + column;
  std::int64_t at = static_cast<std::int64_t>(first + thread / kPacks) * from.columns + column;
  TAPEDECK_ROLLED
  for (int row = thread / kPacks; row < rows; row += step) {
    const bool inside = row < count;
    if (from.packs) {
      copies.begin<16>(to, from.data + (inside ? at : 0), inside);
    } else {
      TAPEDECK_ROLLED
      for (int i = 0; i < 8; ++i) to[i] = inside && column + i < from.columns ? from.data[at + i] : std::uint16_t{0};
    }
    to += step * pitch_of(kSize);
    at += step * from.columns;
  }
}

// The tiles of 16 rows that a warp keeps, in shared memory.
template <int kSize, int kDeep>
struct KeptRows {
  const std::uint16_t* at;  // the first one, plus quarters_down()

  TAPEDECK_DEVICE LeftTile tile(int i, int k) const { return left_tile(at + i * 16 * pitch_of(kSize) + k * 16); }
};

// The same in registers.
template <int kSize, int kDeep>
struct HeldRows {
  LeftTile held[kDeep][kSize / 16];

  TAPEDECK_DEVICE void read(const KeptRows<kSize, kDeep>& from) {
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDeep; ++i) TAPEDECK_UNROLLED
    for (int k = 0; k < kSize / 16; ++k) held[i][k] = from.tile(i, k);
  }
  TAPEDECK_DEVICE const LeftTile& tile(int i, int k) const { return held[i][k]; }
};

// ---- products of a warp ----

// products = the warp's rows times the transpose of the kOther rows of a tile.
template <class Half, int kSize, int kDeep, int kOther, class Rows>
TAPEDECK_DEVICE void multiply_by_rows(const Rows& rows, const std::uint16_t* tile, SumTile (&products)[kDeep][kOther / 8]) {
  constexpr int kPitch = pitch_of(kSize);
  const std::uint16_t* const at = tile + quarters_across(kPitch);
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDeep; ++i) TAPEDECK_UNROLLED
  for (int n = 0; n < kOther / 8; ++n) products[i][n] = {};
  TAPEDECK_UNROLLED
  for (int k = 0; k < kSize / 16; ++k) {
    LeftTile left[kDeep];
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDeep; ++i) left[i] = rows.tile(i, k);
    TAPEDECK_UNROLLED
    for (int n = 0; n < kOther / 16; ++n) {
      const RightTiles right = right_tiles_turned(at + n * 16 * kPitch + k * 16);
      TAPEDECK_UNROLLED
      for (int i = 0; i < kDeep; ++i) {
        add_product<Half>(products[i][2 * n], left[i], right.first);
        add_product<Half>(products[i][2 * n + 1], left[i], right.second);
      }
    }
  }
}

// sums += the weights, rounded to halves, times the kOther rows of a tile.
template <class Half, int kSize, int kDeep, int kOther>
TAPEDECK_DEVICE void add_weighted_rows(const SumTile (&weights)[kDeep][kOther / 8], const std::uint16_t* tile,
                                       SumTile (&sums)[kDeep][kSize / 8]) {
  constexpr int kPitch = pitch_of(kSize);
  const std::uint16_t* const at = tile + quarters_down(kPitch);
  TAPEDECK_UNROLLED
  for (int k = 0; k < kOther / 16; ++k) {
    LeftTile left[kDeep];
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDeep; ++i) left[i] = left_tile_of<Half>(weights[i][2 * k], weights[i][2 * k + 1]);
    TAPEDECK_UNROLLED
    for (int n = 0; n < kSize / 16; ++n) {
      const RightTiles right = right_tiles(at + k * 16 * kPitch + n * 16);
      TAPEDECK_UNROLLED
      for (int i = 0; i < kDeep; ++i) {
        add_product<Half>(sums[i][2 * n], left[i], right.first);
        add_product<Half>(sums[i][2 * n + 1], left[i], right.second);
      }
    }
  }
}

// The row, and the column, of element `at[i]` of a SumTile.
TAPEDECK_DEVICE int row_of_sum(int i) { return static_cast<int>(lane_of_warp()) / 4 + i / 2 * 8; }
TAPEDECK_DEVICE int column_of_sum(int i) { return static_cast<int>(lane_of_warp()) % 4 * 2 + i % 2; }

TAPEDECK_DEVICE void write_halves(std::uint16_t* to, std::uint32_t word, bool both) {
  to[0] = static_cast<std::uint16_t>(word);
  if (both) to[1] = static_cast<std::uint16_t>(word >> 16);
}

// Writes 16 rows of a result, from row `first` on, each multiplied by a factor: that of row g, and that of row g + 8.
template <class Half, int kSize>
TAPEDECK_DEVICE void write_rows(void* data, std::int64_t pair, std::int64_t count, std::int64_t columns, int first,
                                const SumTile (&sums)[kSize / 8], const float (&factors)[2]) {
  const bool words = columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(data) % 4 == 0;
  const int width = static_cast<int>(columns);
  TAPEDECK_UNROLLED
  for (int h = 0; h < 2; ++h) {
    const int row = first + row_of_sum(2 * h);
    if (row >= count) continue;
    auto* const to = static_cast<std::uint16_t*>(data) + (pair * count + row) * columns;
    TAPEDECK_UNROLLED
    for (int n = 0; n < kSize / 8; ++n) {
      const int column = n * 8 + column_of_sum(0);
      const std::uint32_t word = narrow_two(sums[n].at[2 * h] * factors[h], sums[n].at[2 * h + 1] * factors[h], Half{});
      if (column >= width) continue;
      if (words)
        *reinterpret_cast<std::uint32_t*>(to + column) = word;
      else
        write_halves(to + column, word, column + 1 < width);
    }
  }
}

// ---- scores ----

// Scores are in units of ln 2, so that their exponentials are powers of two. The rows of a matrix of scores are queries and its
// columns are keys; with kByKeys it is the other way round.
template <class Half, bool kByKeys>
struct Scores {
  const Attention& a;
  const void* mask;  // of the pair
  int rows, columns;
  float scale;

  TAPEDECK_DEVICE Scores(const Attention& call, std::int64_t pair)
      : a(call),
        mask(call.mask),
        rows(static_cast<int>(kByKeys ? call.s : call.t)),
        columns(static_cast<int>(kByKeys ? call.t : call.s)),
        scale(static_cast<float>(call.scale) * kLog2E) {
    if (mask) mask = static_cast<const char*>(mask) + mask_base(call, pair) * (call.boolean_mask ? 1 : 2);
  }

  // Makes scores of the products of 16 rows and kWide * 8 columns, but for a factor that is greater than 0: the scores are the
  // results times the factor that is returned. So the product with the scale is a part of a later multiply-add where nothing
  // else is to be done. A score is -inf where the query does not see the key, or where one of them is beyond the end.
  template <int kWide>
  TAPEDECK_DEVICE float finish(int row, int column, SumTile (&products)[kWide]) const {
    const int last_row = row + 15, last_column = column + kWide * 8 - 1;
    const bool inside = last_row < rows && last_column < columns,
               seen = !a.causal || (kByKeys ? last_row <= column : last_column <= row);
    if (!mask && inside && seen && scale > 0) return scale;
    TAPEDECK_UNROLLED
    for (int h = 0; h < 2; ++h) {
      const int r = row + row_of_sum(2 * h);
      const int begin = kByKeys && a.causal ? r : 0;
      const int end = r >= rows ? 0 : !kByKeys && a.causal && r < columns ? r + 1 : columns;
      TAPEDECK_UNROLLED
      for (int n = 0; n < kWide; ++n) TAPEDECK_UNROLLED
      for (int j = 2 * h; j < 2 * h + 2; ++j) {
        const int c = column + n * 8 + column_of_sum(j);
        float& x = products[n].at[j];
        x = c >= begin && c < end ? x * scale : minus_infinity<float>();
      }
    }
    if (mask) apply_mask(row, column, products);
    return 1;
  }

  template <int kWide>
  TAPEDECK_DEVICE void apply_mask(int row, int column, SumTile (&scores)[kWide]) const {
    if (a.boolean_mask)
      for_seen<std::uint8_t>(row, column, scores,
                             [](float x, std::uint8_t seen) { return seen ? x : minus_infinity<float>(); });
    else
      for_seen<Half>(row, column, scores, [](float x, Half added) { return std::fma(wide(added), kLog2E, x); });
  }
  // Combines every score with its element of the mask, unless it is -inf: the mask may end before.
  template <class Element, int kWide, class F>
  TAPEDECK_DEVICE void for_seen(int row, int column, SumTile (&scores)[kWide], const F& combine) const {
    const std::int64_t down = a.mask_strides[kByKeys ? 3 : 2], across = a.mask_strides[kByKeys ? 2 : 3];
    std::int64_t at = (row + row_of_sum(0)) * down + (column + column_of_sum(0)) * across;
    TAPEDECK_UNROLLED
    for (int n = 0; n < kWide; ++n) {
      TAPEDECK_UNROLLED
      for (int j = 0; j < 4; ++j) {
        float& x = scores[n].at[j];
        if (x != minus_infinity<float>())
          x = combine(x, static_cast<const Element*>(mask)[at + j / 2 * 8 * down + j % 2 * across]);
      }
      at += 8 * across;
    }
  }
};

}  // namespace halves
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
