// The language of the CUDA kernels: threads, blocks, barriers, shuffles, and the launch. A family of kernels is written once,
// in an .inl file, and compiled twice. nvcc compiles it for the device, into the namespace `cuda`. g++ compiles it for the
// tests, into the namespace `emulated`, where an emulator runs every thread of a block as a fiber
// (tests/kernels/cuda/emulator).
//
// Rules for kernels:
//   - A kernel takes one argument, a plain struct, by value.
//   - The lanes of a warp reach sync_warp() and the shuffles together, and the threads of a block reach sync_block() together.
//   The emulator
//     aborts a launch that breaks this.
//   - Results depend on nothing but the call: a kernel has no atomics of floating numbers, because their order is not fixed.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__

// scalar.h compares with zero for every type; for unsigned types nvcc warns that the comparison is pointless.
#pragma nv_diag_suppress 186
#include <cuda_runtime.h>

#define TAPEDECK_CUDA_SPACE cuda TAPEDECK_API
#define TAPEDECK_KERNEL __global__
#define TAPEDECK_DEVICE __device__ inline
#define TAPEDECK_SHARED __shared__

#else

#define TAPEDECK_CUDA_SPACE emulated
#define TAPEDECK_KERNEL inline
#define TAPEDECK_DEVICE inline
#define TAPEDECK_SHARED static

namespace tapedeck::kernels::emulated {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// The emulator sets these before it continues a thread. One launch runs at a time.
extern Dim3 threadIdx, blockIdx, blockDim, gridDim;

// Runs thread(context) for every thread of every block. A block may have as many barriers as it likes.
void run_threads(Dim3 grid, Dim3 block, std::size_t shared_bytes, void (*thread)(const void* context), const void* context);
void wait_for_block();
void wait_for_warp();
// Every lane of the warp gives `bits`; the result is what `lane` gave. A lane beyond the threads of the block gives the
// caller's own bits.
std::uint64_t exchange(std::uint64_t bits, unsigned lane);
unsigned lane_index();
void* shared_memory();

}  // namespace tapedeck::kernels::emulated

#endif

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kThreads = 256;
// A million threads fill any device; a longer loop gives each thread several elements.
inline constexpr std::int64_t kMaxBlocks = 4096;

#ifdef __CUDACC__

TAPEDECK_DEVICE void sync_block() { __syncthreads(); }
TAPEDECK_DEVICE void sync_warp() { __syncwarp(); }
template <class T>
TAPEDECK_DEVICE T shuffle_xor(T value, unsigned mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <class T>
TAPEDECK_DEVICE T shuffle_down(T value, unsigned delta) {
  return __shfl_down_sync(0xffffffffu, value, delta);
}
template <class T>
TAPEDECK_DEVICE T shuffle(T value, unsigned lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
// Integers only. Each gives the value from before.
TAPEDECK_DEVICE unsigned atomic_add(unsigned* at, unsigned value) { return atomicAdd(at, value); }
TAPEDECK_DEVICE unsigned long long atomic_add(unsigned long long* at, unsigned long long value) { return atomicAdd(at, value); }
TAPEDECK_DEVICE unsigned atomic_max(unsigned* at, unsigned value) { return atomicMax(at, value); }
TAPEDECK_DEVICE unsigned atomic_or(unsigned* at, unsigned value) { return atomicOr(at, value); }
template <class T>
TAPEDECK_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char tapedeck_shared[];
  return reinterpret_cast<T*>(tapedeck_shared);
}

#else

inline void sync_block() { wait_for_block(); }
inline void sync_warp() { wait_for_warp(); }
template <class T>
T shuffle(T value, unsigned lane) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, lane % kWarp);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T shuffle_xor(T value, unsigned mask) {
  return shuffle(value, lane_index() ^ mask);
}
template <class T>
T shuffle_down(T value, unsigned delta) {
  return shuffle(value, lane_index() + delta < kWarp ? lane_index() + delta : lane_index());
}
template <class T>
T exchange_at(T* at, T next) {
  const T before = *at;
  *at = next;
  return before;
}
inline unsigned atomic_add(unsigned* at, unsigned value) { return exchange_at(at, *at + value); }
inline unsigned long long atomic_add(unsigned long long* at, unsigned long long value) { return exchange_at(at, *at + value); }
inline unsigned atomic_max(unsigned* at, unsigned value) { return exchange_at(at, *at < value ? value : *at); }
inline unsigned atomic_or(unsigned* at, unsigned value) { return exchange_at(at, *at | value); }
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(shared_memory());
}

#endif

TAPEDECK_DEVICE std::int64_t thread_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
TAPEDECK_DEVICE std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }
TAPEDECK_DEVICE unsigned lane_of_warp() { return threadIdx.x % kWarp; }
TAPEDECK_DEVICE unsigned warp_of_block() { return threadIdx.x / kWarp; }

// The size of a launch: blocks in x, y and z, threads of a block (x only), and bytes of dynamic shared memory (at most 48 KiB,
// or up to 227 KiB with `large_shared`, which raises the kernel's limit first).
struct Launch {
  std::int64_t blocks = 1;
  unsigned threads = kThreads;
  std::size_t shared_bytes = 0;
  unsigned blocks_y = 1, blocks_z = 1;
  bool large_shared = false;
};

// One thread for each item, up to kMaxBlocks blocks; the kernel loops over the remaining items.
inline Launch for_items(std::int64_t items) {
  const std::int64_t wanted = (items + kThreads - 1) / kThreads;
  return {.blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks};
}

// A kernel without the type of its argument: host code that launches many kernels in the same way is compiled once.
struct AnyKernel {
#ifdef __CUDACC__
  const void* function;
#else
  void (*function)();
  void (*run)(void (*function)(), const void* argument);
#endif
};

template <class Argument>
AnyKernel any_kernel(void (*kernel)(Argument)) {
#ifdef __CUDACC__
  return {reinterpret_cast<const void*>(kernel)};
#else
  return {reinterpret_cast<void (*)()>(kernel), [](void (*function)(), const void* argument) {
            reinterpret_cast<void (*)(Argument)>(function)(*static_cast<const Argument*>(argument));
          }};
#endif
}

// Runs the kernel with the argument on the stream of the call, and does not wait. An error of the launch itself is reported in
// the call. An error that happens later on the device shows at the next synchronisation (runtime.h). A launch of no blocks is
// none.
inline void launch_any(const KernelCall& call, const AnyKernel& kernel, const Launch& size, const void* argument) {
  if (size.blocks <= 0 || size.blocks_y == 0 || size.blocks_z == 0) return;
#ifdef __CUDACC__
  const dim3 grid(static_cast<unsigned>(size.blocks), size.blocks_y, size.blocks_z);
  cudaError_t error = cudaSuccess;
  if (size.large_shared)
    error =
        cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size.shared_bytes));
  void* arguments[] = {const_cast<void*>(argument)};  // which the launch only reads
  if (error == cudaSuccess)
    error = cudaLaunchKernel(kernel.function, grid, dim3(size.threads), arguments, size.shared_bytes,
                             static_cast<cudaStream_t>(call.stream));
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which is reported here
  call.fault->report(cudaGetErrorString(error), error);
#else
  (void)call;
  struct Bound {
    const AnyKernel* kernel;
    const void* argument;
  } bound{&kernel, argument};
  run_threads(
      {static_cast<unsigned>(size.blocks), size.blocks_y, size.blocks_z}, {size.threads, 1, 1}, size.shared_bytes,
      [](const void* context) {
        const auto& b = *static_cast<const Bound*>(context);
        b.kernel->run(b.kernel->function, b.argument);
      },
      &bound);
#endif
}

// Runs kernel(argument) in the same way.
template <class Argument>
void launch(const KernelCall& call, void (*kernel)(Argument), const Launch& size,
            const std::type_identity_t<Argument>& argument) {
  launch_any(call, any_kernel(kernel), size, &argument);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
