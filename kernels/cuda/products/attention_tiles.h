// Attention and its gradient share this: the description of a call, the mask, and tiles of operands in shared memory.
//
// A block of 16 x 16 threads works on a tile of rows (queries, or keys) and reads the other operand tile by tile. The columns
// of an operand are padded with zeros to kSize. A thread has kRows / 16 rows that follow each other, and every sixteenth column
// of a tile of scores; so the 16 threads of a row are neighbours in a warp.
#pragma once

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/cuda/products/numbers.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>

#include <cstdint>
#include <limits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr int kTileRows = 64;  // of the operand that a block keeps
inline constexpr int kAcross = 16;    // threads in each direction
inline constexpr std::int64_t kLargestSize = 128;

// The tiles of the other operand are narrower where the rows are long, because shared memory holds both.
constexpr int other_rows(int size) { return size > 64 ? 32 : 64; }
constexpr int pitch_of(int columns) { return columns + 4; }

// One call. `pairs` counts the (batch, head) pairs.
struct Attention {
  const void *q, *k, *v, *mask;
  DType dtype;
  bool causal, boolean_mask;
  std::int64_t pairs, heads, t, s, d, e;  // q [pairs,t,d], k [pairs,s,d], v [pairs,s,e]
  double scale;
  std::int64_t mask_strides[4];
};

inline Attention attention_of(const KernelCall& call, int mask_operand) {
  const View &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const auto& attrs = call.attributes<AttentionAttrs>();
  Attention a{};
  a.q = q.data;
  a.k = k.data;
  a.v = v.data;
  a.dtype = q.dtype;
  a.causal = attrs.causal;
  a.pairs = q.sizes[0] * q.sizes[1];
  a.heads = q.sizes[1];
  a.t = q.sizes[2];
  a.s = k.sizes[2];
  a.d = q.sizes[3];
  a.e = v.sizes[3];
  a.scale = attrs.scale;
  if (call.n_inputs <= mask_operand) return a;
  const View& mask = call.inputs[mask_operand];
  a.mask = mask.data;
  a.boolean_mask = mask.dtype == DType::boolean;
  for (int i = 0; i < mask.rank; ++i) {
    const int from = mask.rank - 1 - i;
    a.mask_strides[3 - i] = mask.sizes[from] == 1 ? 0 : mask.strides[from];
  }
  return a;
}

inline std::int64_t tiles_of_rows(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// The kernels with tiles count rows and blocks in 32 bits.
inline bool fits_tiles(const Attention& a) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t longest = a.t > a.s ? a.t : a.s;
  return a.dtype != DType::f64 && a.d <= kLargestSize && a.e <= kLargestSize && longest < kMost &&
         a.pairs * tiles_of_rows(longest) < kMost;
}

// Calls f with the padded number of columns, as a constant.
template <class F>
void for_size(const Attention& a, F&& f) {
  const std::int64_t size = a.d > a.e ? a.d : a.e;
  if (size <= 32) return f(std::integral_constant<int, 32>{});
  if (size <= 64) return f(std::integral_constant<int, 64>{});
  f(std::integral_constant<int, 128>{});
}

template <class Real>
TAPEDECK_DEVICE Real minus_infinity() {
  return -std::numeric_limits<Real>::infinity();
}

TAPEDECK_DEVICE std::int64_t mask_base(const Attention& a, std::int64_t pair) {
  return pair / a.heads * a.mask_strides[0] + pair % a.heads * a.mask_strides[1];
}

// The score of a query and a key from their product: scaled, masked, and -inf where the query does not see the key.
template <class Real>
TAPEDECK_DEVICE Real score_of(const Attention& a, std::int64_t base, std::int64_t row, std::int64_t key, Real product) {
  if (key >= a.s || (a.causal && key > row)) return minus_infinity<Real>();
  Real score = product * static_cast<Real>(a.scale);
  if (!a.mask) return score;
  const std::int64_t at = base + row * a.mask_strides[2] + key * a.mask_strides[3];
  if (a.boolean_mask) return static_cast<const std::uint8_t*>(a.mask)[at] ? score : minus_infinity<Real>();
  return score + load_number<Real>(a.mask, a.dtype, at);
}

// ---- tiles in shared memory ----

struct alignas(16) Four {
  float at[4];
};

TAPEDECK_DEVICE Four& four_at(float* p) { return *reinterpret_cast<Four*>(p); }
TAPEDECK_DEVICE const Four& four_at(const float* p) { return *reinterpret_cast<const Four*>(p); }

template <class Element>
struct alignas(4 * sizeof(Element)) Quad {
  Element at[4];
};

TAPEDECK_DEVICE float as_f32(float x) { return x; }
TAPEDECK_DEVICE float as_f32(F16 x) { return to_f32(x); }
TAPEDECK_DEVICE float as_f32(Bf16 x) { return to_f32(x); }

// Reads rows of `columns` elements, up to `rows` of the kRows rows of the tile, four elements at a time where they are aligned.
// The rest of the tile becomes 0.
template <class Element, int kRows, int kSize>
TAPEDECK_DEVICE void read_tile_of(float* tile, const Element* from, std::int64_t rows, int columns) {
  const bool fours = columns % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Quad<Element>) == 0;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kSize / 4; i += static_cast<int>(kThreads)) {
    const int row = i / (kSize / 4), col = i % (kSize / 4) * 4;
    Four four{};
    if (row < rows && col < columns) {
      const Element* at = from + static_cast<std::int64_t>(row) * columns + col;
      if (fours) {
        const Quad<Element> quad = *reinterpret_cast<const Quad<Element>*>(at);
        for (int j = 0; j < 4; ++j) four.at[j] = as_f32(quad.at[j]);
      } else {
        for (int j = 0; j < 4; ++j) four.at[j] = col + j < columns ? as_f32(at[j]) : 0.0f;
      }
    }
    four_at(tile + row * pitch_of(kSize) + col) = four;
  }
}

// Reads the rows [first, first + kRows) of one pair's matrix of `count` rows and `columns` columns.
template <int kRows, int kSize>
TAPEDECK_DEVICE void read_tile(float* tile, const void* data, DType dtype, std::int64_t pair, std::int64_t count,
                               std::int64_t first, std::int64_t columns) {
  const std::int64_t offset = (pair * count + first) * columns, rows = count - first;
  const int width = static_cast<int>(columns);
  if (dtype == DType::f16)
    read_tile_of<F16, kRows, kSize>(tile, static_cast<const F16*>(data) + offset, rows, width);
  else if (dtype == DType::bf16)
    read_tile_of<Bf16, kRows, kSize>(tile, static_cast<const Bf16*>(data) + offset, rows, width);
  else
    read_tile_of<float, kRows, kSize>(tile, static_cast<const float*>(data) + offset, rows, width);
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
TAPEDECK_DEVICE void write_rows(void* data, DType dtype, std::int64_t pair, std::int64_t count, std::int64_t columns,
                                std::int64_t first, int across, const float (&sums)[kDown][Columns<kSize>::kCount]) {
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDown; ++i) {
    TAPEDECK_UNROLLED
    for (int j = 0; j < Columns<kSize>::kCount; ++j) {
      const int column = Columns<kSize>::at(across, j);
      if (first + i < count && column < columns)
        store_number(data, dtype, (pair * count + first + i) * columns + column, sums[i][j]);
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
