// A product of halves is cut into tiles by its shape. A tile keeps f32 sums on the stack. It runs over the inner dimension in
// fixed steps; for each step it makes a block of either factor ready, as pairs (bf16_pairs.h) or as f32 numbers for dnnl_sgemm.
// Then it rounds the sums into the result. A thread takes the tiles of a column one after the other.
#include <tapedeck/kernels/cpu/products/half_products.h>

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/cpu/products/bf16_pairs.h>
#include <tapedeck/kernels/cpu/products/half_rows.h>
#include <tapedeck/kernels/cpu/products/matrix.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/parallel.h>

#include <dnnl.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kHalfCols = 256, kHalfInner = 256, kHalfRows = 128;
constexpr std::int64_t kTallRows = 256;  // of a tile of a product with many tiles
constexpr std::int64_t kManyTiles = 16;

// One tile of a product. The rows of its sums lie `stride` elements apart. Products are added to them if `add`.
struct HalfTile {
  std::int64_t row, col, m, n;
  float* sums;
  std::int64_t stride = kHalfCols;
  bool add = false;
};

// A left factor whose rows lie at any distances.
Half const* row_of(const Rows<Half>& a, std::int64_t row) { return a.row(row); }
Half const* row_of(const Matrix<const Half>& a, std::int64_t row) { return a.at(row, 0); }
std::int64_t step_of(const Rows<Half>& a) { return a.view.rank > 0 ? a.view.strides[a.view.rank - 1] : 1; }
std::int64_t step_of(const Matrix<const Half>& a) { return a.col_stride; }

// ---- blocks as f32 numbers ----

template <class H, class A>
void widen_rows(const A& a, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, float* to) {
  const std::int64_t step = step_of(a);
  for (std::int64_t i = 0; i < rows; ++i) widen_row<H>(row_of(a, row + i) + col * step, step, cols, to + i * cols);
}

// A row-major block of f32 numbers. A matrix whose columns lie one behind the other is turned eight columns at a time.
template <class H, class A>
void widen_block(const A& a, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, float* to) {
  if constexpr (std::is_same_v<A, Matrix<const Half>>) {
    if (a.row_stride == 1 && a.col_stride != 1) {
      float columns[8 * kHalfInner];
      for (std::int64_t j = 0; j < cols; j += 8) {
        const std::int64_t some = std::min<std::int64_t>(8, cols - j);
        for (std::int64_t i = 0; i < some; ++i) widen_row<H>(a.at(row, col + j + i), 1, rows, columns + i * rows);
        transpose(columns, rows, to + j, cols, rows, some);
      }
      return;
    }
  }
  widen_rows<H>(a, row, col, rows, cols, to);
}

template <class H, class A>
void sum_in_f32(const A& a, const Matrix<const Half>& b, const HalfTile& t) {
  alignas(64) float left[kHalfRows * kHalfInner];
  alignas(64) float right[kHalfInner * kHalfCols];
  const OneThread one_thread;
  for (std::int64_t inner = 0; inner < a.cols; inner += kHalfInner) {
    const std::int64_t k = std::min(kHalfInner, a.cols - inner);
    widen_block<H>(a, t.row, inner, t.m, k, left);
    widen_block<H>(b, inner, t.col, k, t.n, right);
    dnnl_sgemm('N', 'N', t.m, t.n, k, 1.0f, left, k, right, t.n, t.add || inner > 0 ? 1.0f : 0.0f, t.sums, t.stride);
  }
}

// ---- blocks as pairs ----

LeftPairs packed_rows(const Half* const* rows, std::int64_t step, std::int64_t m, std::int64_t k, Bf16Pair* buffer) {
  const std::int64_t pairs = (k + 1) / 2;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < pairs; ++p) {
      const Half* const at = rows[i] + 2 * p * step;
      buffer[i * pairs + p] = at[0] | static_cast<Bf16Pair>(2 * p + 1 < k ? at[step] : 0) << 16;
    }
  return {reinterpret_cast<const char*>(buffer), pairs * 4, 4};
}

// Rows that lie one behind the other are used where they are. Columns that do become rows of pairs, which lie one behind the
// other.
template <class A>
LeftPairs left_pairs(const A& a, std::int64_t row, std::int64_t inner, std::int64_t m, std::int64_t k, Bf16Pair* buffer) {
  if constexpr (std::is_same_v<A, Matrix<const Half>>) {
    if (a.col_stride == 1 && k % 2 == 0) return {reinterpret_cast<const char*>(a.at(row, inner)), a.row_stride * 2, 4};
    if (a.row_stride == 1) {
      for (std::int64_t p = 0; 2 * p < k; ++p)
        interleave_bf16(m, a.at(row, inner + 2 * p), 2 * p + 1 < k ? a.at(row, inner + 2 * p + 1) : nullptr, buffer + p * m);
      return {reinterpret_cast<const char*>(buffer), 4, m * 4};
    }
  }
  const Half* rows[kTallRows];
  for (std::int64_t i = 0; i < m; ++i) rows[i] = row_of(a, row + i) + inner * step_of(a);
  return packed_rows(rows, step_of(a), m, k, buffer);
}

// Blocks of both factors as pairs. Tiles of the same columns, one after the other, share the block of the right factor where
// it holds the whole inner dimension.
struct PairBlocks {
  const Half* packed = nullptr;  // where the matrix lies that `right` holds
  alignas(64) Bf16Pair left[kTallRows * kHalfInner / 2];
  alignas(64) Bf16Pair right[kHalfInner / 2 * kHalfCols];

  PairBlocks() {}  // leaves the blocks as they are
};

template <class A>
void sum_pairs(const A& a, const Matrix<const Half>& b, const HalfTile& t, PairBlocks& blocks) {
  for (std::int64_t inner = 0; inner < a.cols; inner += kHalfInner) {
    const std::int64_t k = std::min(kHalfInner, a.cols - inner);
    const Half* const block = b.at(inner, t.col);
    const LeftPairs pairs = left_pairs(a, t.row, inner, t.m, k, blocks.left);
    if (t.m <= kFewBf16Rows && b.col_stride == 1 && t.stride == kHalfCols) {  // it writes up to 127 columns behind the last
      multiply_few_bf16_rows(t.m, t.n, k, pairs, block, b.row_stride, t.sums, t.stride, t.add || inner > 0);
      continue;
    }
    if (k != a.cols || block != blocks.packed) pack_bf16_panels(k, t.n, block, b.row_stride, b.col_stride, blocks.right);
    blocks.packed = k == a.cols ? block : nullptr;
    multiply_bf16_pairs(t.m, t.n, (k + 1) / 2, pairs, blocks.right, t.sums, t.stride, t.add || inner > 0);
  }
}

// ---- the three ops ----

template <class H, class A>
void sum_tile(HalfProducts way, const A& a, const Matrix<const Half>& b, const HalfTile& t, PairBlocks& blocks) {
  if (a.cols == 0)
    for (std::int64_t i = 0; i < t.m && !t.add; ++i) std::fill_n(t.sums + i * t.stride, t.n, 0.0f);
  else if (way == HalfProducts::pairs)
    sum_pairs(a, b, t, blocks);
  else
    sum_in_f32<H>(a, b, t);
}

template <class H>
void round_tile(const HalfTile& t, const Matrix<Half>& c) {
  for (std::int64_t i = 0; i < t.m; ++i) round_row<H>(t.n, t.sums + i * kHalfCols, c.at(t.row + i, t.col));
}

template <class H>
void add_rounded(const HalfTile& t, const Matrix<const Half>& old, const Matrix<Half>& c) {
  float sum[kHalfCols];
  Half product[kHalfCols];
  for (std::int64_t i = 0; i < t.m; ++i) {
    round_row<H>(t.n, t.sums + i * kHalfCols, product);
    for (std::int64_t j = 0; j < t.n; ++j) sum[j] = to_f32(H{*old.at(t.row + i, t.col + j)}) + to_f32(H{product[j]});
    round_row<H>(t.n, sum, c.at(t.row + i, t.col));
  }
}

template <class H>
void add_bias(const View& bias, const HalfTile& t) {
  const std::int64_t step = bias.strides[0];
  float row[kHalfCols];
  widen_row<H>(bias.as<const Half>() + t.col * step, step, t.n, row);
  for (std::int64_t i = 0; i < t.m; ++i)
    for (std::int64_t j = 0; j < t.n; ++j) t.sums[i * kHalfCols + j] += row[j];
}

// Calls f(index, tile, blocks) for every tile of `batch` products [m,k] x [k,n]. The sums of a tile are undefined.
template <class F>
void for_each_tile(HalfProducts way, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, const F& f) {
  const std::int64_t cols = (n - 1) / kHalfCols + 1;
  const bool tall = way == HalfProducts::pairs && batch * ((m - 1) / kTallRows + 1) * cols >= kManyTiles;
  const std::int64_t tile_rows = tall ? kTallRows : kHalfRows, rows = (m - 1) / tile_rows + 1, jobs = rows * cols;
  const double multiplications =
      static_cast<double>(std::min(m, tile_rows) * std::min(n, kHalfCols)) * static_cast<double>(k + 1);
  parallel_for(batch * jobs, grain_for(multiplications / (way == HalfProducts::pairs ? 80 : 40)),
               [&](std::int64_t first, std::int64_t last) {
                 alignas(64) float sums[kTallRows * kHalfCols];
                 PairBlocks blocks;
                 for (std::int64_t job = first; job < last; ++job) {
                   const std::int64_t row = job % rows * tile_rows, col = job % jobs / rows * kHalfCols;
                   f(job / jobs, HalfTile{row, col, std::min(tile_rows, m - row), std::min(kHalfCols, n - col), sums}, blocks);
                 }
               });
}

template <class H>
void matmul_of_halves(const KernelCall& call, HalfProducts way) {
  const View &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  if (c.numel() == 0) return;
  const std::int64_t m = c.sizes[c.rank - 2], n = c.sizes[c.rank - 1];
  for_each_tile(way, c.numel() / (m * n), m, n, a.sizes[a.rank - 1],
                [&](std::int64_t index, const HalfTile& t, PairBlocks& blocks) {
                  sum_tile<H>(way, matrix_of<const Half>(a, index), matrix_of<const Half>(b, index), t, blocks);
                  round_tile<H>(t, matrix_of<Half>(c, index));
                });
}

template <class H>
void addmm_of_halves(const KernelCall& call, HalfProducts way) {
  const View &old = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2], &c = call.outputs[0];
  if (c.numel() == 0) return;
  const std::int64_t m = c.sizes[c.rank - 2], n = c.sizes[c.rank - 1];
  for_each_tile(way, c.numel() / (m * n), m, n, a.sizes[a.rank - 1],
                [&](std::int64_t index, const HalfTile& t, PairBlocks& blocks) {
                  sum_tile<H>(way, matrix_of<const Half>(a, index), matrix_of<const Half>(b, index), t, blocks);
                  add_rounded<H>(t, matrix_of<const Half>(old, index), matrix_of<Half>(c, index));
                });
}

template <class H>
void linear_of_halves(const KernelCall& call, HalfProducts way) {
  const View &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const std::int64_t k = w.sizes[0], n = w.sizes[1], m = y.numel() / n;
  const Matrix<const Half> b{w.as<const Half>(), k, n, w.strides[0], w.strides[1]};
  const Matrix<Half> c{y.as<Half>(), m, n, n, 1};
  for_each_tile(way, 1, m, n, k, [&](std::int64_t, const HalfTile& t, PairBlocks& blocks) {
    if (x.dense())
      sum_tile<H>(way, Matrix<const Half>{x.as<const Half>(), m, k, k, 1}, b, t, blocks);
    else
      sum_tile<H>(way, Rows<Half>{x, k}, b, t, blocks);
    if (call.n_inputs > 2) add_bias<H>(call.inputs[2], t);
    round_tile<H>(t, c);
  });
}

}  // namespace

template <class H>
void multiply_halves(HalfProducts way, const Matrix<const Half>& a, const Matrix<const Half>& b, float* c,
                     std::int64_t c_stride, bool add) {
  const std::int64_t tile_rows = way == HalfProducts::pairs ? kTallRows : kHalfRows;
  PairBlocks blocks;
  for (std::int64_t col = 0; col < b.cols; col += kHalfCols)
    for (std::int64_t row = 0; row < a.rows; row += tile_rows)
      sum_tile<H>(way, a, b,
                  HalfTile{row, col, std::min(tile_rows, a.rows - row), std::min(kHalfCols, b.cols - col),
                           c + row * c_stride + col, c_stride, add},
                  blocks);
}

template void multiply_halves<F16>(HalfProducts, const Matrix<const Half>&, const Matrix<const Half>&, float*, std::int64_t,
                                   bool);
template void multiply_halves<Bf16>(HalfProducts, const Matrix<const Half>&, const Matrix<const Half>&, float*, std::int64_t,
                                    bool);

HalfProducts half_products(DType dtype) {
  return dtype == DType::bf16 && multiplies_bf16_pairs() ? HalfProducts::pairs : HalfProducts::f32;
}

void matmul_half(const KernelCall& call, HalfProducts way) {
  call.outputs[0].dtype == DType::bf16 ? matmul_of_halves<Bf16>(call, way) : matmul_of_halves<F16>(call, way);
}

void addmm_half(const KernelCall& call, HalfProducts way) {
  call.outputs[0].dtype == DType::bf16 ? addmm_of_halves<Bf16>(call, way) : addmm_of_halves<F16>(call, way);
}

void linear_half(const KernelCall& call, HalfProducts way) {
  call.outputs[0].dtype == DType::bf16 ? linear_of_halves<Bf16>(call, way) : linear_of_halves<F16>(call, way);
}

}  // namespace tapedeck::kernels::cpu
