// Kernels over all gradients at once: whether all are finite, and the norm of all together. One launch takes up to kMostTensors
// tensors; the blocks in y are the tensors, and the blocks in x share the elements of each.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/reduce.h>

#include <cmath>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr int kMostTensors = 64;

struct Tensors {
  const void* data[kMostTensors];
  std::int64_t n[kMostTensors];
  DType dtypes[kMostTensors];
  double* sums;          // [tensor, block], of global_norm
  std::uint8_t* finite;  // the result of all_finite
};

// The blocks that share one tensor: by the largest tensor alone, so that the order of a sum does not depend on anything else.
inline std::int64_t blocks_per_tensor(const KernelCall& call) {
  constexpr std::int64_t kElementsOfBlock = 4096, kMost = 128;
  std::int64_t largest = 1;
  for (int k = 0; k < call.n_inputs; ++k)
    if (call.inputs[k].numel() > largest) largest = call.inputs[k].numel();
  const std::int64_t blocks = (largest + kElementsOfBlock - 1) / kElementsOfBlock;
  return blocks < kMost ? blocks : kMost;
}

// Launches the kernel for all operands.
inline void for_tensors(const KernelCall& call, void (*kernel)(Tensors)) {
  const std::int64_t blocks = blocks_per_tensor(call);
  for (int first = 0; first < call.n_inputs; first += kMostTensors) {
    const int count = call.n_inputs - first < kMostTensors ? call.n_inputs - first : kMostTensors;
    Tensors all{};
    for (int k = 0; k < count; ++k) {
      const View& x = call.inputs[first + k];
      all.data[k] = x.data, all.n[k] = x.numel(), all.dtypes[k] = x.dtype;
    }
    all.sums = static_cast<double*>(call.workspace) + first * blocks;
    all.finite = call.outputs[0].as<std::uint8_t>();
    launch<Tensors>(call, kernel, Launch{.blocks = blocks, .blocks_y = static_cast<unsigned>(count)}, all);
  }
}

// ---- all_finite ----

TAPEDECK_DEVICE bool is_finite(const void* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f64) return std::fabs(static_cast<const double*>(data)[at]) < std::numeric_limits<double>::infinity();
  return std::fabs(load<Real>(data, dtype, at)) < std::numeric_limits<float>::infinity();
}

TAPEDECK_KERNEL void assume_finite_kernel(std::uint8_t* const result) { *result = 1; }

// Every thread that writes, writes the same byte.
TAPEDECK_KERNEL void all_finite_kernel(const Tensors all) {
  const unsigned k = blockIdx.y;
  bool finite = true;
  for (std::int64_t i = thread_index(); i < all.n[k]; i += thread_count())
    finite = finite && is_finite(all.data[k], all.dtypes[k], i);
  if (!finite) *all.finite = 0;
}

void all_finite(const KernelCall& call) {
  launch<std::uint8_t*>(call, &assume_finite_kernel, Launch{.threads = 1}, call.outputs[0].as<std::uint8_t>());
  for_tensors(call, &all_finite_kernel);
}

// ---- global_norm: squares add up in f64, so that the sum neither overflows nor loses precision ----

TAPEDECK_KERNEL void squares_kernel(const Tensors all) {
  const unsigned k = blockIdx.y;
  const bool f64 = all.dtypes[k] == DType::f64;
  double sum = 0;
  for (std::int64_t i = thread_index(); i < all.n[k]; i += thread_count()) {
    const double x = f64 ? load<double>(all.data[k], all.dtypes[k], i) : load<Real>(all.data[k], all.dtypes[k], i);
    sum += x * x;
  }
  sum = folds::BlockTeam::sum(sum);
  if (threadIdx.x == 0) all.sums[k * gridDim.x + blockIdx.x] = sum;
}

struct Norm {
  const double* sums;
  std::int64_t n;
  void* out;
  DType dtype;
};

TAPEDECK_KERNEL void norm_kernel(const Norm norm) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < norm.n; i += blockDim.x) sum += norm.sums[i];
  sum = folds::BlockTeam::sum(sum);
  if (threadIdx.x != 0) return;
  if (norm.dtype == DType::f64)
    store<double>(norm.out, norm.dtype, 0, std::sqrt(sum));
  else
    store<Real>(norm.out, norm.dtype, 0, static_cast<float>(std::sqrt(sum)));
}

std::int64_t global_norm_workspace(const KernelCall& call) {
  return call.n_inputs * blocks_per_tensor(call) * static_cast<std::int64_t>(sizeof(double));
}

void global_norm(const KernelCall& call) {
  for_tensors(call, &squares_kernel);
  launch<Norm>(call, &norm_kernel, Launch{},
               {static_cast<const double*>(call.workspace), call.n_inputs * blocks_per_tensor(call), call.outputs[0].data,
                call.outputs[0].dtype});
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
