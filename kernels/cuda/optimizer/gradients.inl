// all_finite and global_norm: one number from all elements of many dense tensors, on the device. A launch takes up to kMost
// tensors, and as many blocks of threads fold each as the largest tensor wants; a last fold (fold.h) adds up the totals of all
// blocks. Both count in f64: squares, or elements that are not finite.
#pragma once

#include <tapedeck/kernels/cuda/fold.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

struct Tensors {
  static constexpr int kMost = 48;
  static constexpr std::int64_t kMostPieces = 64, kPiece = 4096;
  struct Item {
    const void* data;
    std::int64_t n;
    DType dtype;
  };
  Item items[kMost];
  double* totals;  // [tensors, blocks]
  bool squares;    // else elements that are not finite
};

TAPEDECK_DEVICE double element_as_double(const Tensors::Item& item, std::int64_t i) {
  if (item.dtype == DType::f64) return static_cast<const double*>(item.data)[i];
  return static_cast<double>(load<Real>(item.data, item.dtype, i));
}

TAPEDECK_KERNEL void fold_tensors(const Tensors t) {
  const Tensors::Item& item = t.items[blockIdx.y];
  double total = 0;
  for (std::int64_t i = thread_index(); i < item.n; i += thread_count()) {
    const double x = element_as_double(item, i);
    total += t.squares ? x * x : x - x == 0 ? 0.0 : 1.0;
  }
  total = BlockTeam::sum(total);
  if (threadIdx.x == 0) t.totals[static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = total;
}

// Folds the totals of all blocks to the result: the root of the sum, in f32 or f64, or whether the count is 0.
struct TotalTask {
  using A = double;
  const double* totals;
  View out;

  TAPEDECK_DEVICE A identity() const { return 0; }
  TAPEDECK_DEVICE A combine(A a, A b) const { return a + b; }
  TAPEDECK_DEVICE int place(std::int64_t) const { return 0; }
  TAPEDECK_DEVICE A at(int, std::int64_t i) const { return totals[i]; }
  TAPEDECK_DEVICE void finish(std::int64_t, A total) const {
    if (out.dtype == DType::f64)
      *static_cast<double*>(out.data) = std::sqrt(total);
    else if (out.dtype == DType::boolean)
      *static_cast<unsigned char*>(out.data) = total == 0;
    else
      store<Real>(out.data, out.dtype, 0, static_cast<float>(std::sqrt(total)));
  }
};

// The blocks of each tensor.
inline std::int64_t blocks_of_tensors(const KernelCall& call) {
  std::int64_t blocks = 1;
  for (int i = 0; i < call.n_inputs; ++i) {
    const std::int64_t wanted = call.inputs[i].numel() / Tensors::kPiece + 1;
    if (wanted > blocks) blocks = wanted < Tensors::kMostPieces ? wanted : Tensors::kMostPieces;
  }
  return blocks;
}
inline std::int64_t totals_of(const KernelCall& call) { return call.n_inputs * blocks_of_tensors(call); }

inline void total_of_tensors(const KernelCall& call, bool squares) {
  auto* const totals = static_cast<double*>(call.workspace);
  const std::int64_t blocks = blocks_of_tensors(call);
  for (int first = 0; first < call.n_inputs; first += Tensors::kMost) {
    const int count = call.n_inputs - first < Tensors::kMost ? call.n_inputs - first : Tensors::kMost;
    Tensors t{{}, totals + first * blocks, squares};
    for (int k = 0; k < count; ++k) {
      const View& v = call.inputs[first + k];
      t.items[k] = {v.data, v.numel(), v.dtype};
    }
    launch(call, &fold_tensors, {.blocks = blocks, .blocks_y = static_cast<unsigned>(count)}, t);
  }
  const Pieces cut(1, totals_of(call));
  fold(call, TotalTask{totals, call.outputs[0]}, cut, false, totals + totals_of(call));
}

inline std::int64_t tensors_bytes(const KernelCall& call) {
  return 8 * totals_of(call) + Pieces(1, totals_of(call)).bytes(sizeof(double));
}

}  // namespace folds

std::int64_t all_finite_workspace(const KernelCall& call) { return folds::tensors_bytes(call); }
std::int64_t global_norm_workspace(const KernelCall& call) { return folds::tensors_bytes(call); }
void all_finite(const KernelCall& call) { folds::total_of_tensors(call, false); }
void global_norm(const KernelCall& call) { folds::total_of_tensors(call, true); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
