// The emulator of CUDA's threads: barriers, shuffles, shared memory, and the kernels that break the rules.
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/simt.h>

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tapedeck::kernels::emulated {
namespace {

struct Sums {
  const int* in;
  int* out;
  int n;
};

// Every block adds up its part of the numbers: warps by shuffles, then the block in shared memory.
TAPEDECK_KERNEL void sum_kernel(const Sums s) {
  TAPEDECK_SHARED int of_warp[32];
  int total = 0;
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) total += s.in[i];
  for (unsigned step = 16; step > 0; step /= 2) total += shuffle_xor(total, step);
  if (lane_of_warp() == 0) of_warp[warp_of_block()] = total;
  sync_block();
  if (threadIdx.x == 0) {
    int all = 0;
    for (unsigned w = 0; w < blockDim.x / kWarp; ++w) all += of_warp[w];
    s.out[blockIdx.x] = all;
  }
}

KernelCall call_with(KernelFault& fault) {
  KernelCall call;
  call.fault = &fault;
  return call;
}

TEST(Emulator, AddsUpByShufflesAndBarriers) {
  KernelFault fault;
  for (const int n : {1, 31, 100, 5000}) {
    std::vector<int> in(static_cast<std::size_t>(n)), out(3, -1);
    std::iota(in.begin(), in.end(), 7);
    launch(call_with(fault), &sum_kernel, Launch{.blocks = 3, .threads = 96}, Sums{in.data(), out.data(), n});
    EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0), std::accumulate(in.begin(), in.end(), 0)) << n;
  }
}

TAPEDECK_KERNEL void reverse_kernel(const Sums s) {
  int* const all = dynamic_shared<int>();
  all[threadIdx.x] = s.in[threadIdx.x];
  sync_block();
  s.out[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

TEST(Emulator, HasDynamicSharedMemory) {
  KernelFault fault;
  std::vector<int> in(100), out(100);
  std::iota(in.begin(), in.end(), 0);
  launch(call_with(fault), &reverse_kernel, Launch{.threads = 100, .shared_bytes = 400}, Sums{in.data(), out.data(), 100});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], 99 - i);
}

TAPEDECK_KERNEL void half_a_block_kernel(const Sums) {
  if (threadIdx.x < 32) sync_block();
}

TEST(EmulatorDeathTest, EndsALaunchThatWouldHang) {
  KernelFault fault;
  EXPECT_DEATH(launch(call_with(fault), &half_a_block_kernel, Launch{.threads = 64}, Sums{}), "hangs");
}

TAPEDECK_KERNEL void half_a_warp_kernel(const Sums) {
  if (threadIdx.x % 2 == 0) sync_warp();
}

TAPEDECK_KERNEL void two_barriers_kernel(const Sums) {
  if (threadIdx.x < 40)
    sync_block();
  else
    sync_warp();
}

TEST(EmulatorDeathTest, EndsALaunchWhoseWarpWouldHang) {
  KernelFault fault;
  EXPECT_DEATH(launch(call_with(fault), &half_a_warp_kernel, Launch{.threads = 32}, Sums{}), "hangs: some lanes of a warp");
  EXPECT_DEATH(launch(call_with(fault), &two_barriers_kernel, Launch{.threads = 64}, Sums{}), "hangs: some lanes of a warp");
}

// Every thread adds what its neighbours in the warp gave, many times, and the warps meet now and then: the locals of a thread
// outlive its waits.
TAPEDECK_KERNEL void rounds_kernel(const Sums s) {
  unsigned mine = threadIdx.x;
  for (int round = 0; round < s.n; ++round) {
    mine += shuffle(mine, (lane_of_warp() + 1) % 8) + shuffle_xor(mine, 16);
    if (round % 3 == 0) sync_block();
    if (round % 3 == 1) sync_warp();
  }
  s.out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(mine);
}

TEST(Emulator, KeepsTheLocalsOfAThreadThatWaits) {
  constexpr unsigned threads = 72;  // the last warp has eight lanes: none has a partner 16 lanes away
  KernelFault fault;
  std::vector<int> out(2 * threads);
  launch(call_with(fault), &rounds_kernel, Launch{.blocks = 2, .threads = threads}, Sums{nullptr, out.data(), 7});
  std::vector<unsigned> expected(threads), before;
  std::iota(expected.begin(), expected.end(), 0U);
  for (int round = 0; round < 7; ++round) {
    before = expected;
    for (unsigned i = 0; i < threads; ++i) {
      const unsigned warp = i / kWarp * kWarp, across = warp + (i % kWarp ^ 16);
      expected[i] += before[warp + (i % kWarp + 1) % 8] + before[across < threads ? across : i];
    }
  }
  for (unsigned i = 0; i < 2 * threads; ++i) EXPECT_EQ(static_cast<unsigned>(out[i]), expected[i % threads]) << i;
}

TAPEDECK_KERNEL void faulty_kernel(KernelFault* const fault) {
  report_fault(fault, Fault::index_out_of_range, 40 + threadIdx.x);
}

TEST(Emulator, KeepsTheFirstFaultOfACall) {
  KernelFault fault;
  launch(call_with(fault), &faulty_kernel, Launch{.threads = 5}, &fault);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fault.what.load()), static_cast<std::uintptr_t>(Fault::index_out_of_range));
  EXPECT_EQ(fault.value.load(), 40);
}

}  // namespace
}  // namespace tapedeck::kernels::emulated
