// Attention and its gradient share this: tiles of operands in shared memory, as f32.
//
// A block of 16 x 16 threads works on a tile of rows (queries, or keys) and reads the other operand tile by tile. The columns
// of an operand are padded with zeros to kSize. A thread has kRows / 16 rows that follow each other, and every sixteenth column
// of a tile of scores; so the 16 threads of a row are neighbours in a warp.
#pragma once

#include <tapedeck/kernels/cuda/products/attention_call.h>
#include <tapedeck/kernels/cuda/products/numbers.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// Rows of the operand that a block keeps. Few blocks are made twice as many, so that they occupy all multiprocessors of a
// device; this is compiled for rows of 33 to 64 numbers, which are the usual ones.
inline constexpr int kTileRows = 64, kFewRows = 32;
inline constexpr std::int64_t kFewBlocks = 128;
inline constexpr int kAcross = 16;  // threads in each direction

// The tiles of the other operand are narrower where the rows are long, because shared memory holds both.
constexpr int other_rows(int size) { return size > 64 ? 32 : 64; }
constexpr int pitch_of(int columns) { return columns + 4; }

inline std::int64_t tiles_of_rows(std::int64_t rows, int of_tile = kTileRows) { return (rows + of_tile - 1) / of_tile; }

// The kernels with tiles count rows and blocks in 32 bits.
inline bool fits_tiles(const Attention& a) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t longest = a.t > a.s ? a.t : a.s;
  return a.dtype != DType::f64 && a.d <= kLargestSize && a.e <= kLargestSize && longest < kMost &&
         a.pairs * tiles_of_rows(longest) < kMost;
}

// Calls f with the padded number of columns and the rows of a tile, as constants. `count` is the number of rows of a pair.
template <class F>
void for_tiles(const Attention& a, std::int64_t count, const F& f) {
  for_size(a, [&](auto size) {
    if constexpr (size() == 64) {
      if (a.pairs * tiles_of_rows(count) < kFewBlocks) return f(size, std::integral_constant<int, kFewRows>{});
    }
    f(size, std::integral_constant<int, kTileRows>{});
  });
}

inline Launch launch_of_tiles(const Attention& a, std::int64_t count, int rows, std::size_t shared_bytes) {
  return {.blocks = a.pairs * tiles_of_rows(count, rows), .shared_bytes = shared_bytes, .large_shared = true};
}

// ---- tiles in shared memory ----

struct alignas(16) Four {
  float at[4];
};

// Neighbouring numbers that are read by one access.
template <int kCount>
struct alignas(4 * kCount) Group {
  float at[kCount];
};

TAPEDECK_DEVICE Four& four_at(float* p) { return *reinterpret_cast<Four*>(p); }
TAPEDECK_DEVICE const Four& four_at(const float* p) { return *reinterpret_cast<const Four*>(p); }

// Reads the rows [first, first + kRows) of one pair's matrix of `count` rows and `columns` columns, four elements at a time
// where they are aligned. The rest of the tile becomes 0.
template <int kRows, int kSize>
TAPEDECK_DEVICE void read_tile(float* tile, const void* data, std::int64_t pair, std::int64_t count, std::int64_t first,
                               std::int64_t columns) {
  const float* const from = static_cast<const float*>(data) + (pair * count + first) * columns;
  const int rows = static_cast<int>(count - first < kRows ? count - first : kRows), width = static_cast<int>(columns);
  const bool fours = width % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Four) == 0;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kSize / 4; i += static_cast<int>(kThreads)) {
    const int row = i / (kSize / 4), col = i % (kSize / 4) * 4;
    Four four{};
    if (row < rows && col < width) {
      const float* const at = from + row * width + col;
      if (fours) {
        four = four_at(at);
      } else {
        for (int j = 0; j < 4; ++j) four.at[j] = col + j < width ? at[j] : 0.0f;
      }
    }
    four_at(tile + row * pitch_of(kSize) + col) = four;
  }
}

// products[i][j] = row `first + i` of a times row `across + 16 j` of b.
template <int kSize, int kDown, int kWide>
TAPEDECK_DEVICE void multiply_rows(const float* a, const float* b, int first, int across, float (&products)[kDown][kWide]) {
  constexpr int kPitch = pitch_of(kSize);
  for (int i = 0; i < kDown; ++i)
    for (int j = 0; j < kWide; ++j) products[i][j] = 0;
  TAPEDECK_ROLLED
  for (int c = 0; c < kSize; c += 4) {
    Four x[kDown], y[kWide];
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) x[i] = four_at(a + (first + i) * kPitch + c);
    TAPEDECK_UNROLLED
    for (int j = 0; j < kWide; ++j) y[j] = four_at(b + (across + j * kAcross) * kPitch + c);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) TAPEDECK_UNROLLED
    for (int j = 0; j < kWide; ++j) TAPEDECK_UNROLLED
    for (int e = 0; e < 4; ++e) products[i][j] = std::fma(x[i].at[e], y[j].at[e], products[i][j]);
  }
}

// The columns of a result that a thread sums: groups of up to four neighbours.
template <int kSize>
struct Columns {
  static constexpr int kCount = kSize / kAcross, kGroup = kCount < 4 ? kCount : 4;
  static TAPEDECK_HD int at(int across, int j) { return j / kGroup * (kAcross * kGroup) + across * kGroup + j % kGroup; }
};

// sums[i] += weight[i] times a row of a tile, for the thread's columns.
template <int kSize, int kDown>
TAPEDECK_DEVICE void add_row(const float* row, int across, const float (&weights)[kDown],
                             float (&sums)[kDown][Columns<kSize>::kCount]) {
  float x[Columns<kSize>::kCount];
  TAPEDECK_UNROLLED
  for (int j = 0; j < Columns<kSize>::kCount; ++j) x[j] = row[Columns<kSize>::at(across, j)];
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDown; ++i) TAPEDECK_UNROLLED
  for (int j = 0; j < Columns<kSize>::kCount; ++j) sums[i][j] = std::fma(weights[i], x[j], sums[i][j]);
}

// sums[i] += row `first + i` of the weights times the kRows rows of a tile.
template <int kSize, int kRows, int kDown>
TAPEDECK_DEVICE void add_weighted_rows(const float* weights, const float* rows, int first, int across,
                                       float (&sums)[kDown][Columns<kSize>::kCount]) {
  TAPEDECK_ROLLED
  for (int j = 0; j < kRows; j += 4) {
    Four w[kDown];
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) w[i] = four_at(weights + (first + i) * pitch_of(kRows) + j);
    TAPEDECK_UNROLLED
    for (int e = 0; e < 4; ++e) {
      float of_row[kDown];
      TAPEDECK_UNROLLED
      for (int i = 0; i < kDown; ++i) of_row[i] = w[i].at[e];
      add_row<kSize>(rows + (j + e) * pitch_of(kSize), across, of_row, sums);
    }
  }
}

// Writes a thread's rows of a result [pairs,count,columns].
template <int kSize, int kDown>
TAPEDECK_DEVICE void write_rows(void* data, std::int64_t pair, std::int64_t count, std::int64_t columns, std::int64_t first,
                                int across, const float (&sums)[kDown][Columns<kSize>::kCount]) {
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDown; ++i) {
    TAPEDECK_UNROLLED
    for (int j = 0; j < Columns<kSize>::kCount; ++j) {
      const int column = Columns<kSize>::at(across, j);
      if (first + i < count && column < columns)
        static_cast<float*>(data)[(pair * count + first + i) * columns + column] = sums[i][j];
    }
  }
}

// The largest element, or the sum, of what the 16 threads of a row hold. All of them get it.
TAPEDECK_DEVICE float row_maximum(float x) {
  for (unsigned step = kAcross / 2; step > 0; step /= 2) x = Maximum{}(x, shuffle_xor(x, step));
  return x;
}
TAPEDECK_DEVICE float row_total(float x) {
  for (unsigned step = kAcross / 2; step > 0; step /= 2) x = x + shuffle_xor(x, step);
  return x;
}

// ---- the plain kernels, for f64 and for long rows: blocks of kPlain threads ----

inline constexpr int kPlain = 128;    // threads, and keys or queries of a step
inline constexpr int kColumns = 512;  // of the result, for one block

inline Launch plain_launch(std::int64_t rows, std::int64_t columns) {
  const std::int64_t chunks = columns > kColumns ? (columns + kColumns - 1) / kColumns : 1, most = std::int64_t{1} << 30;
  return {.blocks = rows < most ? rows : most, .threads = kPlain, .blocks_y = static_cast<unsigned>(chunks)};
}

// Combines what the threads of a block hold, in a fixed order; every thread gets the result. `scratch` holds a number for each
// warp.
template <class Real, class Combine>
TAPEDECK_DEVICE Real combine_block(Real x, Real* scratch, const Combine& combine) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) x = combine(x, shuffle_xor(x, step));
  if (lane_of_warp() == 0) scratch[warp_of_block()] = x;
  sync_block();
  Real all = scratch[0];
  for (int w = 1; w < kPlain / static_cast<int>(kWarp); ++w) all = combine(all, scratch[w]);
  sync_block();
  return all;
}

// The product of two rows of n elements that begin at the elements x and y.
template <class Real>
TAPEDECK_DEVICE Real row_product(DType dtype, const void* a, std::int64_t x, const void* b, std::int64_t y, std::int64_t n) {
  Real sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum = std::fma(load_number<Real>(a, dtype, x + i), load_number<Real>(b, dtype, y + i), sum);
  return sum;
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
