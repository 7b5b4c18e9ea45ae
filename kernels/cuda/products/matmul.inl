// matmul, linear and addmm. cuBLASLt computes what it can (lt_product.h); the kernels of this file compute the rest: products
// with a vector, integers, matrices of unusual strides, and everything where cuBLASLt is missing.
//
// A product is never split over the inner dimension between blocks, so its bits depend on the call alone. f32, f16 and bf16 are
// summed in f32, and a result is rounded once, after `old` or the bias is added.
#include <tapedeck/kernels/cuda/products/lt_product.h>
#include <tapedeck/kernels/cuda/products/numbers.h>
#include <tapedeck/kernels/cuda/products/product.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>

#include <cstdint>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// ---- one matrix of the batch ----

struct MatrixPlace {
  std::int64_t a, b, old, out;  // offsets of the matrices, in elements
};

TAPEDECK_DEVICE MatrixPlace place_of(const Product& p, std::int64_t index) {
  MatrixPlace place{0, 0, 0, index * p.m * p.n};
  for (int d = p.batch_rank - 1; d >= 0; --d) {
    const std::int64_t i = index % p.batch_sizes[d];
    index /= p.batch_sizes[d];
    place.a += i * p.a.batch_strides[d];
    place.b += i * p.b.batch_strides[d];
    place.old += i * p.old.batch_strides[d];
  }
  return place;
}

// Writes one element of the result. `old` may lie on the result.
template <class Sum>
TAPEDECK_DEVICE void finish(const Product& p, const MatrixPlace& place, std::int64_t row, std::int64_t col, Sum sum) {
  if (p.bias) sum = sum + load_number<Sum>(p.bias, p.dtype, col * p.bias_stride);
  if (p.old.data)
    sum = load_number<Sum>(p.old.data, p.dtype, place.old + row * p.old.row_stride + col * p.old.col_stride) + sum;
  store_number(p.out, p.dtype, place.out + row * p.n + col, sum);
}

// ---- tiles ----

// Half of an operand's tile step: kOuter rows of a (or columns of b) by kInner inner indices. The threads read along the
// dimension in which the elements lie side by side.
template <class Sum, int kOuter, int kInner>
struct TileLoader {
  static constexpr int kEach = kOuter * kInner / static_cast<int>(kThreads);
  static constexpr int kPitch = kOuter + 4;
  static constexpr int kOuterStep = static_cast<int>(kThreads) / kInner, kInnerStep = static_cast<int>(kThreads) / kOuter;
  using Row = Sum[kPitch];

  const char* data;  // the thread's first element of the step
  DType dtype;
  bool side_by_side;  // the inner indices lie side by side, otherwise the rows
  int outer;          // the rows that the matrix has from the thread's first one on, up to kOuter
  std::int64_t step;  // in bytes, from one element of the thread to its next one
  Sum held[kEach];

  TAPEDECK_DEVICE TileLoader(const Product& p, const void* first, std::int64_t offset, std::int64_t rows,
                             std::int64_t outer_stride, std::int64_t inner_stride)
      : dtype(p.dtype), side_by_side(inner_stride == 1) {
    // A matrix without elements has no address.
    data = static_cast<const char*>(first);
    if (data) data += (offset + outer_of(0) * outer_stride + inner_of(0) * inner_stride) * p.element_bytes;
    outer = static_cast<int>(rows < kOuter ? rows : kOuter) - outer_of(0);
    step = (side_by_side ? kOuterStep * outer_stride : kInnerStep * inner_stride) * p.element_bytes;
  }
  TAPEDECK_DEVICE int outer_of(int i) const {
    const int thread = static_cast<int>(threadIdx.x);
    return side_by_side ? thread / kInner + i * kOuterStep : thread % kOuter;
  }
  TAPEDECK_DEVICE int inner_of(int i) const {
    const int thread = static_cast<int>(threadIdx.x);
    return side_by_side ? thread % kInner : thread / kOuter + i * kInnerStep;
  }
  // Reads a step of which the matrix has `inner` inner indices left. What lies outside of the matrix counts as 0.
  TAPEDECK_DEVICE void read(std::int64_t inner) {
    const int left = static_cast<int>(inner < kInner ? inner : kInner) - inner_of(0);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kEach; ++i) {
      const bool inside = (side_by_side ? i * kOuterStep : 0) < outer && (side_by_side ? 0 : i * kInnerStep) < left;
      held[i] = inside ? load_number<Sum>(data + i * step, dtype, 0) : Sum(0);
    }
  }
  TAPEDECK_DEVICE void move_on(std::int64_t bytes) { data += kInner * bytes; }
  TAPEDECK_DEVICE void write(Row* shared) const {
    TAPEDECK_UNROLLED
    for (int i = 0; i < kEach; ++i) shared[inner_of(i)][outer_of(i)] = held[i];
  }
};

// The row (or column) of the tile that a thread's number i stands for: groups of four neighbours, 64 apart.
TAPEDECK_DEVICE int of_micro_tile(int thread, int i) { return i / 4 * 64 + thread * 4 + i % 4; }

// One step of a tile in shared memory, aligned for reads of 16 bytes.
template <class Sum, int kInner, int kPitch>
struct alignas(16) TileStep {
  Sum at[kInner][kPitch];
};

struct TilePlace {
  MatrixPlace matrix;
  std::int64_t row, col;
  bool beyond;  // the grid has more blocks than there are tiles
};

template <int kTile>
TAPEDECK_DEVICE TilePlace place_of_tile(const Product& p) {
  const std::int64_t tile_rows = (p.m + kTile - 1) / kTile, tile_cols = (p.n + kTile - 1) / kTile;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  const std::int64_t matrix = tile / (tile_rows * tile_cols);
  return {place_of(p, matrix), tile / tile_cols % tile_rows * kTile, tile % tile_cols * kTile, matrix >= p.batch()};
}

// Computes a tile of kTile by kTile elements. Each of the 16 x 16 threads sums kMicro by kMicro of them in registers, over
// steps of kInner inner indices in shared memory. The next step is read while this one is computed.
template <class Sum, int kTile, int kInner>
TAPEDECK_KERNEL void TAPEDECK_TWO_BLOCKS multiply_tiles(const Product p) {
  constexpr int kMicro = kTile / 16;
  using Loader = TileLoader<Sum, kTile, kInner>;
  TAPEDECK_SHARED TileStep<Sum, kInner, Loader::kPitch> left, right;
  const int down = static_cast<int>(threadIdx.x) / 16, across = static_cast<int>(threadIdx.x) % 16;
  const TilePlace at = place_of_tile<kTile>(p);
  if (at.beyond) return;
  Loader a(p, p.a.data, at.matrix.a + at.row * p.a.row_stride, p.m - at.row, p.a.row_stride, p.a.col_stride);
  Loader b(p, p.b.data, at.matrix.b + at.col * p.b.col_stride, p.n - at.col, p.b.col_stride, p.b.row_stride);
  // The place waits in shared memory for the end, because the registers are needed for sums.
  TAPEDECK_SHARED TilePlace kept;
  if (threadIdx.x == 0) kept = at;
  Sum sums[kMicro][kMicro] = {};
  a.read(p.k);
  b.read(p.k);
  for (std::int64_t k = 0; k < p.k; k += kInner) {
    a.write(left.at);
    b.write(right.at);
    sync_block();
    if (k + kInner < p.k) {
      a.move_on(p.a.col_stride * p.element_bytes);
      b.move_on(p.b.row_stride * p.element_bytes);
      a.read(p.k - k - kInner);
      b.read(p.k - k - kInner);
    }
    TAPEDECK_UNROLLED_BY_2  // more would not fit the registers
        for (int q = 0; q < kInner; ++q) {
      Sum x[kMicro], y[kMicro];
      TAPEDECK_UNROLLED
      for (int i = 0; i < kMicro; ++i) {
        x[i] = left.at[q][of_micro_tile(down, i)];
        y[i] = right.at[q][of_micro_tile(across, i)];
      }
      TAPEDECK_UNROLLED
      for (int i = 0; i < kMicro; ++i) TAPEDECK_UNROLLED
      for (int j = 0; j < kMicro; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
    }
    sync_block();
  }
  if (p.k == 0) sync_block();
  const TilePlace& end = kept;
  TAPEDECK_UNROLLED
  for (int i = 0; i < kMicro; ++i) TAPEDECK_UNROLLED
  for (int j = 0; j < kMicro; ++j) {
    const std::int64_t row = end.row + of_micro_tile(down, i), col = end.col + of_micro_tile(across, j);
    if (row < p.m && col < p.n) finish(p, end.matrix, row, col, sums[i][j]);
  }
}

// ---- vectors ----

// The product of a matrix, of `outputs` rows of k elements, with a vector.
struct VectorProduct {
  Product p;
  bool row;  // the result is a row: the vector is a, and the matrix is b, transposed
  std::int64_t outputs, outer_stride, inner_stride, vector_stride;
};

inline VectorProduct vector_product(const Product& p) {
  if (p.m == 1) return {p, true, p.n, p.b.col_stride, p.b.row_stride, p.a.col_stride};
  return {p, false, p.m, p.a.row_stride, p.a.col_stride, p.b.row_stride};
}

inline constexpr int kVectorOutputs = 32;  // of one block

// A warp takes four outputs one after the other, and its lanes the inner indices, where those lie side by side.
template <class Sum>
TAPEDECK_DEVICE void sum_by_warps(const VectorProduct& v, const MatrixPlace& place, std::int64_t first) {
  const std::int64_t matrix = v.row ? place.b : place.a, vector = v.row ? place.a : place.b;
  const void* matrix_data = v.row ? v.p.b.data : v.p.a.data;
  const void* vector_data = v.row ? v.p.a.data : v.p.b.data;
  for (int i = 0; i < kVectorOutputs / 8; ++i) {
    const std::int64_t at = first + warp_of_block() * (kVectorOutputs / 8) + i;
    Sum sum = 0;
    if (at < v.outputs)
      for (std::int64_t k = lane_of_warp(); k < v.p.k; k += kWarp)
        sum = multiply_add(load_number<Sum>(matrix_data, v.p.dtype, matrix + at * v.outer_stride + k * v.inner_stride),
                           load_number<Sum>(vector_data, v.p.dtype, vector + k * v.vector_stride), sum);
    for (unsigned step = kWarp / 2; step > 0; step /= 2) sum = sum + shuffle_xor(sum, step);
    if (at < v.outputs && lane_of_warp() == 0) finish(v.p, place, v.row ? 0 : at, v.row ? at : 0, sum);
  }
}

// A lane takes one output, and the warps take the inner indices in turn, where the outputs lie side by side.
template <class Sum>
TAPEDECK_DEVICE void sum_by_lanes(const VectorProduct& v, const MatrixPlace& place, std::int64_t first) {
  TAPEDECK_SHARED Sum parts[8][kVectorOutputs];
  const std::int64_t matrix = v.row ? place.b : place.a, vector = v.row ? place.a : place.b;
  const void* matrix_data = v.row ? v.p.b.data : v.p.a.data;
  const void* vector_data = v.row ? v.p.a.data : v.p.b.data;
  const std::int64_t at = first + lane_of_warp();
  Sum sum = 0;
  if (at < v.outputs)
    for (std::int64_t k = warp_of_block(); k < v.p.k; k += 8)
      sum = multiply_add(load_number<Sum>(matrix_data, v.p.dtype, matrix + at * v.outer_stride + k * v.inner_stride),
                         load_number<Sum>(vector_data, v.p.dtype, vector + k * v.vector_stride), sum);
  parts[warp_of_block()][lane_of_warp()] = sum;
  sync_block();
  if (warp_of_block() == 0 && at < v.outputs) {
    for (int w = 1; w < 8; ++w) sum = sum + parts[w][lane_of_warp()];
    finish(v.p, place, v.row ? 0 : at, v.row ? at : 0, sum);
  }
  sync_block();
}

template <class Sum>
TAPEDECK_KERNEL void multiply_vector(const VectorProduct v) {
  const std::int64_t groups = (v.outputs + kVectorOutputs - 1) / kVectorOutputs, jobs = v.p.batch() * groups;
  for (std::int64_t job = blockIdx.x; job < jobs; job += gridDim.x) {
    const MatrixPlace place = place_of(v.p, job / groups);
    if (v.inner_stride == 1)
      sum_by_warps<Sum>(v, place, job % groups * kVectorOutputs);
    else
      sum_by_lanes<Sum>(v, place, job % groups * kVectorOutputs);
  }
}

// ---- what cuBLASLt leaves to add ----

// Adds `old` and the bias to the product, which lies in the result.
template <class Sum>
TAPEDECK_KERNEL void add_to_product(const Product p) {
  const std::int64_t matrix = p.m * p.n, elements = p.batch() * matrix;
  for (std::int64_t i = thread_index(); i < elements; i += thread_count()) {
    const MatrixPlace place = place_of(p, i / matrix);
    finish(p, place, i % matrix / p.n, i % p.n, load_number<Sum>(p.out, p.dtype, i));
  }
}

// ---- host ----

inline int current_device() {
  int device = 0;
#ifdef __CUDACC__
  cudaGetDevice(&device);
#endif
  return device;
}

inline std::int64_t tiles_of(const Product& p, std::int64_t tile) {
  return p.batch() * ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile);
}

// One block for each tile, in x and y, because x alone may be too short.
inline Launch tile_grid(std::int64_t tiles) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 30;
  if (tiles <= kLargest) return {.blocks = tiles};
  return {.blocks = kLargest, .blocks_y = static_cast<unsigned>((tiles + kLargest - 1) / kLargest)};
}

template <class Sum>
void launch_tiles(const KernelCall& call, const Product& p) {
  if constexpr (std::is_same_v<Sum, float>) {
    // Large tiles read less, but only pay where they still fill the device.
    if (tiles_of(p, 128) >= 128) return launch(call, &multiply_tiles<float, 128, 8>, tile_grid(tiles_of(p, 128)), p);
  }
  launch(call, &multiply_tiles<Sum, 64, 8>, tile_grid(tiles_of(p, 64)), p);
}

template <class Sum>
void launch_product(const KernelCall& call, const Product& p) {
  if (p.m != 1 && p.n != 1) return launch_tiles<Sum>(call, p);
  const VectorProduct v = vector_product(p);
  const std::int64_t jobs = p.batch() * ((v.outputs + kVectorOutputs - 1) / kVectorOutputs);
  launch(call, &multiply_vector<Sum>, {.blocks = jobs < kMaxBlocks ? jobs : kMaxBlocks}, v);
}

template <class Sum>
void compute_product(const KernelCall& call, const Product& p) {
  switch (cuda::lt_multiply(p, current_device(), call.workspace, call.workspace_bytes, call.stream)) {
    case cuda::LtDone::nothing:
      return launch_product<Sum>(call, p);
    case cuda::LtDone::product:
      return launch(call, &add_to_product<Sum>, for_items(p.batch() * p.m * p.n), p);
    case cuda::LtDone::everything:
      return;
    case cuda::LtDone::failed:
      return call.fault->report("cuBLASLt failed in the middle of a batch", p.batch());
  }
}

// Calls f with a number of the type in which the product is summed.
template <class F>
void for_sums(const KernelCall& call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::uint32_t{});
    case DType::i64:
      return f(std::uint64_t{});
    default:
      return unsupported(call, dtype);
  }
}

inline void run_product(const KernelCall& call, Product p) {
  if (call.outputs[0].numel() == 0) return;
  simplify(p);
  for_sums(call, p.dtype, [&](auto sum) { compute_product<decltype(sum)>(call, p); });
}

inline Product addmm_of(const KernelCall& call) {
  return addmm_product(call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0]);
}

// A dense sum is added where the product is made, and any other sum afterwards: so the product is that of matmul, to the bit. A
// sum of f16 or bf16 is always added before the result is rounded.
inline bool adds_afterwards(const KernelCall& call) { return !call.inputs[0].dense() && !is_half(call.outputs[0].dtype); }

inline void run_addmm(const KernelCall& call) {
  const Product p = addmm_of(call);
  if (!adds_afterwards(call)) return run_product(call, p);
  Product alone = p;
  alone.old = {};
  run_product(call, alone);
  const std::int64_t elements = call.outputs[0].numel();
  if (elements > 0)
    for_sums(call, p.dtype, [&](auto sum) { launch(call, &add_to_product<decltype(sum)>, for_items(elements), p); });
}

inline std::int64_t product_workspace(const KernelCall& call, Product p) {
  if (call.outputs[0].numel() == 0) return 0;
  simplify(p);
  return cuda::lt_workspace(p, current_device());
}

inline Product linear_of(const KernelCall& call) {
  return linear_product(call.inputs[0], call.inputs[1], call.n_inputs > 2 ? &call.inputs[2] : nullptr, call.outputs[0]);
}

void matmul(const KernelCall& call) { run_product(call, matmul_product(call.inputs[0], call.inputs[1], call.outputs[0])); }
void linear(const KernelCall& call) { run_product(call, linear_of(call)); }
void addmm(const KernelCall& call) { run_addmm(call); }
std::int64_t matmul_workspace(const KernelCall& call) {
  return product_workspace(call, matmul_product(call.inputs[0], call.inputs[1], call.outputs[0]));
}
std::int64_t linear_workspace(const KernelCall& call) { return product_workspace(call, linear_of(call)); }
std::int64_t addmm_workspace(const KernelCall& call) {
  Product p = addmm_of(call);
  if (adds_afterwards(call)) p.old = {};
  return product_workspace(call, p);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
