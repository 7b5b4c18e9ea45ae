// Launches kernels on the call's stream, without waiting. An error of the launch itself is reported in the call. An error that
// happens later on the device is reported at the next synchronisation (runtime.h).
#pragma once

// scalar.h compares with zero for every type; for unsigned types nvcc warns that the comparison is pointless.
#pragma nv_diag_suppress 186

#include <tapedeck/kernels/cuda/pointwise.inl>

#include <cuda_runtime.h>

namespace tapedeck::kernels::cuda {

inline constexpr unsigned kThreads = 256;
// A million threads fill any device; a longer loop gives each thread several elements.
inline constexpr std::int64_t kMaxBlocks = 4096;

__device__ inline std::int64_t thread_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

// Runs kernel(argument) with one thread per item, up to kMaxBlocks blocks. The kernel itself loops over the remaining items.
template <class Argument>
void launch(const KernelCall& call, void (*kernel)(Argument), std::int64_t items, std::type_identity_t<Argument> argument) {
  if (items == 0) return;
  const std::int64_t wanted = (items + kThreads - 1) / kThreads;
  const dim3 grid(static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks));
  void* arguments[] = {&argument};
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, dim3(kThreads), arguments, 0,
                                             static_cast<cudaStream_t>(call.stream));
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which is reported here
  call.fault->report(cudaGetErrorString(error), error);
}

template <class F, class Out, class... In>
__global__ void map_kernel(const Walk<1 + sizeof...(In)> walk) {
  map_thread<Out, In...>(walk, F{}, thread_index(), thread_count());
}

struct DeviceLaunch {
  template <class Out, class... In, class F>
  static void map(const KernelCall& call, const F&) {
    const auto walk = make_walk<1 + sizeof...(In)>(call);
    launch<Walk<1 + sizeof...(In)>>(call, &map_kernel<F, Out, In...>, walk.n, walk);
  }
};

// Defines the function that the op registry links to under this name.
#define TAPEDECK_DEVICE_KERNEL(name, family, functor) \
  void name(const KernelCall& call) { family<DeviceLaunch, functor>(call); }

}  // namespace tapedeck::kernels::cuda
