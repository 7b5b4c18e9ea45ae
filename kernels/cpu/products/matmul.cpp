// matmul: batches of matrices of any strides; f16 and bf16 are in half_products.cpp. linear: one product of all rows; a bias is
// added to each tile while the tile is in the cache. addmm: each tile of the product is computed in a buffer and then added to
// the result, so the bits are those of matmul followed by add.
//
// The shape alone cuts the result into tiles. A tile runs over the inner dimension in fixed steps. Each step is one call of
// dnnl_sgemm (f32), or of a small loop (other types, and f32 products too small for a call). The step always gets plain
// row-major blocks, because oneDNN gives different bits for plain and for transposed operands: other blocks are first
// transposed into a buffer on the stack. Tiles are so small that oneDNN chooses its kernel by their size alone. So the bits
// depend on the shape and the values only.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/cpu/products/half_products.h>
#include <tapedeck/kernels/cpu/products/matrix.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <dnnl.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kTileRows = 128;
constexpr std::int64_t kTileCols = 256;
constexpr std::int64_t kTileInner = 256;
constexpr std::int64_t kTinyProduct = 20 * 20 * 20;

// A block of a matrix: its rows are contiguous, `stride` elements apart.
template <class T>
struct Block {
  const T* data;
  std::int64_t stride;
};

template <class T>
void copy_into(const Matrix<const T>& m, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, T* to) {
  if (m.row_stride == 1) return transpose(m.at(row, col), m.col_stride, to, cols, rows, cols);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) to[i * cols + j] = *m.at(row + i, col + j);
}

// The rows [row, row + rows) and columns [col, col + cols) as a row-major block: the matrix itself if it is row-major,
// otherwise a copy in `buffer`.
template <class T>
Block<T> row_major(const Matrix<const T>& m, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols,
                   T* buffer) {
  if (is_plain(m)) return {m.at(row, col), m.rows == 1 ? m.cols : m.row_stride};
  copy_into(m, row, col, rows, cols, buffer);
  return {buffer, cols};
}

// A row-major block of the view: the view itself if it is dense, otherwise a copy in `buffer`.
template <class T>
Block<T> row_major(const Rows<T>& x, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, T* buffer) {
  const std::int64_t step = x.view.rank > 0 ? x.view.strides[x.view.rank - 1] : 1;
  if (x.view.dense()) return {x.row(row) + col, x.cols};
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* from = x.row(row + i) + col * step;
    for (std::int64_t j = 0; j < cols; ++j) buffer[i * cols + j] = from[j * step];
  }
  return {buffer, cols};
}

// Integers are multiplied as unsigned numbers, so that overflow wraps around. One register holds kLanes neighbours of a row.
template <class T>
constexpr int kLanes = 32 / static_cast<int>(sizeof(T));
template <class T>
struct LanesOf {
  typedef Wrap<T> type __attribute__((vector_size(32)));
};
template <class T>
using Lanes = typename LanesOf<T>::type;

template <class T>
Lanes<T> load(const T* from) {
  Lanes<T> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

// Computes kRows rows by kVectors registers of c = a b, or of c += a b if `accumulate`. Each element is summed in the order of
// the inner index.
template <int kRows, int kVectors, class T>
void multiply_cell(std::int64_t k, Block<T> a, Block<T> b, T* c, std::int64_t c_stride, bool accumulate) {
  Lanes<T> sums[kRows][kVectors] = {};
  if (accumulate)
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kVectors; ++j) sums[i][j] = load(c + i * c_stride + j * kLanes<T>);
  for (std::int64_t p = 0; p < k; ++p) {
    const T* right = b.data + p * b.stride;
    for (int j = 0; j < kVectors; ++j) {
      const Lanes<T> lanes = load(right + j * kLanes<T>);
      for (int i = 0; i < kRows; ++i) sums[i][j] += static_cast<Wrap<T>>(a.data[i * a.stride + p]) * lanes;
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) std::memcpy(c + i * c_stride + j * kLanes<T>, &sums[i][j], sizeof(Lanes<T>));
}

// Computes c = a b, or c += a b, for a single column.
template <class T>
void multiply_column(std::int64_t m, std::int64_t k, Block<T> a, Block<T> b, T* c, std::int64_t c_stride, bool accumulate) {
  for (std::int64_t i = 0; i < m; ++i) {
    T sum = accumulate ? c[i * c_stride] : T(0);
    for (std::int64_t p = 0; p < k; ++p) sum = Add{}(sum, Mul{}(a.data[i * a.stride + p], b.data[p * b.stride]));
    c[i * c_stride] = sum;
  }
}

// Computes all full cells of kVectors registers from column `col` on, and returns the first column that is left over.
template <int kVectors, class T>
std::int64_t multiply_columns(std::int64_t m, std::int64_t n, std::int64_t k, Block<T> a, Block<T> b, T* c,
                              std::int64_t c_stride, bool accumulate, std::int64_t col) {
  constexpr std::int64_t width = kVectors * kLanes<T>;
  for (; col + width <= n; col += width) {
    const Block<T> right{b.data + col, b.stride};
    const auto left = [&](std::int64_t row) { return Block<T>{a.data + row * a.stride, a.stride}; };
    std::int64_t row = 0;
    for (; row + 4 <= m; row += 4)
      multiply_cell<4, kVectors>(k, left(row), right, c + row * c_stride + col, c_stride, accumulate);
    for (; row < m; ++row) multiply_cell<1, kVectors>(k, left(row), right, c + row * c_stride + col, c_stride, accumulate);
  }
  return col;
}

template <class T>
void multiply_loop(std::int64_t m, std::int64_t n, std::int64_t k, Block<T> a, Block<T> b, T* c, std::int64_t c_stride,
                   bool accumulate) {
  std::int64_t col = multiply_columns<2>(m, n, k, a, b, c, c_stride, accumulate, 0);
  col = multiply_columns<1>(m, n, k, a, b, c, c_stride, accumulate, col);
  for (; col < n; ++col) multiply_column(m, k, a, Block<T>{b.data + col, b.stride}, c + col, c_stride, accumulate);
}

template <class T>
void multiply(bool tiny, std::int64_t m, std::int64_t n, std::int64_t k, Block<T> a, Block<T> b, T* c, std::int64_t c_stride,
              bool accumulate) {
  if constexpr (std::is_same_v<T, float>) {
    if (!tiny) {
      const OneThread one_thread;
      dnnl_sgemm('N', 'N', m, n, k, 1.0f, a.data, a.stride, b.data, b.stride, accumulate ? 1.0f : 0.0f, c, c_stride);
      return;
    }
  }
  multiply_loop(m, n, k, a, b, c, c_stride, accumulate);
}

// Computes m x n elements of one product, beginning at (row, col). `A` is a Matrix or Rows.
template <class T, class A>
void multiply_block(bool tiny, const A& a, const Matrix<const T>& b, std::int64_t row, std::int64_t col, std::int64_t m,
                    std::int64_t n, T* to, std::int64_t to_stride) {
  alignas(64) T a_buffer[kTileRows * kTileInner];
  alignas(64) T b_buffer[kTileInner * kTileCols];
  for (std::int64_t inner = 0; inner < a.cols; inner += kTileInner) {
    const std::int64_t k = std::min(kTileInner, a.cols - inner);
    multiply(tiny, m, n, k, row_major(a, row, inner, m, k, a_buffer), row_major(b, inner, col, k, n, b_buffer), to, to_stride,
             inner > 0);
  }
}

// Computes the tiles of one product in the rows [begin, end) and in one column of tiles. A block of b that must be turned
// serves all of them.
template <class T, class A>
void multiply_strip(bool tiny, const A& a, const Matrix<const T>& b, const Matrix<T>& c, std::int64_t begin, std::int64_t end,
                    std::int64_t col) {
  alignas(64) T a_buffer[kTileRows * kTileInner];
  alignas(64) T b_buffer[kTileInner * kTileCols];
  const std::int64_t n = std::min(kTileCols, c.cols - col);
  for (std::int64_t inner = 0; inner < a.cols; inner += kTileInner) {
    const std::int64_t k = std::min(kTileInner, a.cols - inner);
    const Block<T> right = row_major(b, inner, col, k, n, b_buffer);
    for (std::int64_t row = begin; row < end; row += kTileRows) {
      const std::int64_t m = std::min(kTileRows, end - row);
      multiply(tiny, m, n, k, row_major(a, row, inner, m, k, a_buffer), right, c.at(row, col), c.row_stride, inner > 0);
    }
  }
}

// Computes one tile of `old` plus a product. `old` and the result may be the same memory.
template <class T>
void add_tile(bool tiny, const Matrix<const T>& old, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
              std::int64_t row, std::int64_t col) {
  alignas(64) T product[kTileRows * kTileCols];
  const std::int64_t m = std::min(kTileRows, c.rows - row), n = std::min(kTileCols, c.cols - col);
  if (a.cols > 0)
    multiply_block(tiny, a, b, row, col, m, n, product, n);
  else
    std::fill(product, product + m * n, T(0));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) *c.at(row + i, col + j) = Add{}(*old.at(row + i, col + j), product[i * n + j]);
}

// The number of tiles below each other that one job takes: several if the blocks of b must be turned, and if there are enough
// jobs.
template <class T>
std::int64_t tiles_of_strip(const Matrix<const T>& b, std::int64_t tile_rows, std::int64_t jobs) {
  constexpr std::int64_t kStripTiles = 4, kEnoughJobs = 16;
  const bool turned = !is_plain(b);
  return turned && jobs >= kStripTiles * kEnoughJobs ? std::min(kStripTiles, tile_rows) : 1;
}

// Calls f(tiny, index, begin, end, col) for every strip of `batch` products [m,k] x [k,n]: some tiles below each other, in rows
// [begin, end). `tiny` says that the product is too small for a call of oneDNN.
template <class T, class F>
void for_each_strip(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix<const T>& b, const F& f) {
  const std::int64_t tile_rows = (m - 1) / kTileRows + 1, tile_cols = (n - 1) / kTileCols + 1;
  const std::int64_t strip = tiles_of_strip(b, tile_rows, batch * tile_rows * tile_cols);
  const std::int64_t strips = (tile_rows - 1) / strip + 1, jobs = strips * tile_cols, strip_rows = strip * kTileRows;
  const bool tiny = m * n * k <= kTinyProduct;
  const double multiplications =
      static_cast<double>(std::min(m, strip_rows) * std::min(n, kTileCols)) * static_cast<double>(k + 1);
  parallel_for(batch * jobs, grain_for(multiplications / (std::is_same_v<T, float> ? 50 : 2)),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t job = first; job < last; ++job) {
                   const std::int64_t begin = job % jobs / tile_cols * strip_rows;
                   f(tiny, job / jobs, begin, std::min(begin + strip_rows, m), job % tile_cols * kTileCols);
                 }
               });
}

template <class T>
void matmul_of(const KernelCall& call) {
  const View &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  const std::int64_t k = a.sizes[a.rank - 1], elements = c.numel();
  if (elements == 0) return;
  if (k == 0) {
    std::fill(c.as<T>(), c.as<T>() + elements, T(0));
    return;
  }
  const std::int64_t m = c.sizes[c.rank - 2], n = c.sizes[c.rank - 1];
  for_each_strip<T>(elements / (m * n), m, n, k, matrix_of<const T>(b, 0),
                    [&](bool tiny, std::int64_t index, std::int64_t begin, std::int64_t end, std::int64_t col) {
                      multiply_strip<T>(tiny, matrix_of<const T>(a, index), matrix_of<const T>(b, index),
                                        matrix_of<T>(c, index), begin, end, col);
                    });
}

template <class T>
void addmm_of(const KernelCall& call) {
  const View &old = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2], &c = call.outputs[0];
  if (c.numel() == 0) return;
  const std::int64_t m = c.sizes[c.rank - 2], n = c.sizes[c.rank - 1], k = a.sizes[a.rank - 1];
  for_each_strip<T>(c.numel() / (m * n), m, n, k, matrix_of<const T>(b, 0),
                    [&](bool tiny, std::int64_t index, std::int64_t begin, std::int64_t end, std::int64_t col) {
                      for (std::int64_t row = begin; row < end; row += kTileRows)
                        add_tile<T>(tiny, matrix_of<const T>(old, index), matrix_of<const T>(a, index),
                                    matrix_of<const T>(b, index), matrix_of<T>(c, index), row, col);
                    });
}

template <class T>
void clear_tile(const Matrix<T>& c, std::int64_t row, std::int64_t col) {
  for (std::int64_t i = row; i < std::min(row + kTileRows, c.rows); ++i)
    std::fill(c.at(i, col), c.at(i, std::min(col + kTileCols, c.cols)), T(0));
}

// Adds the bias to every row of a tile.
template <class T>
void add_bias(const View& bias, const Matrix<T>& c, std::int64_t row, std::int64_t col) {
  const std::int64_t m = std::min(kTileRows, c.rows - row), n = std::min(kTileCols, c.cols - col), step = bias.strides[0];
  const T* from = bias.as<const T>() + col * step;
  for (std::int64_t i = 0; i < m; ++i) {
    T* to = c.at(row + i, col);
    if (step == 1) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < n; ++j) to[j] += from[j];
    } else {
      for (std::int64_t j = 0; j < n; ++j) to[j] += from[j * step];
    }
  }
}

template <class T>
void linear_of(const KernelCall& call) {
  const View &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  const std::int64_t k = w.sizes[0], n = w.sizes[1], elements = y.numel();
  if (elements == 0) return;
  const std::int64_t m = elements / n;
  const Rows<T> a{x, k};
  const Matrix<const T> b{w.as<const T>(), k, n, w.strides[0], w.strides[1]};
  const Matrix<T> c{y.as<T>(), m, n, n, 1};
  for_each_strip<T>(1, m, n, k, b, [&](bool tiny, std::int64_t, std::int64_t begin, std::int64_t end, std::int64_t col) {
    if (k > 0) multiply_strip<T>(tiny, a, b, c, begin, end, col);
    for (std::int64_t row = begin; row < end; row += kTileRows) {
      if (k == 0) clear_tile(c, row, col);
      if (call.n_inputs > 2) add_bias(call.inputs[2], c, row, col);
    }
  });
}

}  // namespace

void linear(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype;
  if (is_half(dtype)) return linear_half(call, half_products(dtype));
  for_floats(call, dtype, [&](auto t) { linear_of<decltype(t)>(call); });
}

void addmm(const KernelCall& call) {
  switch (call.outputs[0].dtype) {
    case DType::f32:
      return addmm_of<float>(call);
    case DType::f64:
      return addmm_of<double>(call);
    case DType::i32:
      return addmm_of<std::int32_t>(call);
    case DType::i64:
      return addmm_of<std::int64_t>(call);
    case DType::f16:
    case DType::bf16:
      return addmm_half(call, half_products(call.outputs[0].dtype));
    default:
      return unsupported(call, call.outputs[0].dtype);
  }
}

void matmul(const KernelCall& call) {
  switch (call.outputs[0].dtype) {
    case DType::f32:
      return matmul_of<float>(call);
    case DType::f64:
      return matmul_of<double>(call);
    case DType::i32:
      return matmul_of<std::int32_t>(call);
    case DType::i64:
      return matmul_of<std::int64_t>(call);
    case DType::f16:
    case DType::bf16:
      return matmul_half(call, half_products(call.outputs[0].dtype));
    default:
      return unsupported(call, call.outputs[0].dtype);
  }
}

}  // namespace tapedeck::kernels::cpu
