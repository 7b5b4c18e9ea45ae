// Runs the threads of a block as fibers of one thread of the host (simt.h, host side).
//
// A fiber runs until it ends or waits: at the barrier of its block, or at the barrier of its warp. The scheduler goes round the
// fibers that do not wait. When all that are left wait, it opens every warp whose lanes all wait for the warp, or else the
// block, if all wait for the block. A mixture is a barrier that not every thread reaches, which hangs on a device: the emulator
// prints it and aborts. Blocks run one after the other.
#include <tapedeck/kernels/cuda/simt.h>

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TAPEDECK_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPEDECK_EMULATOR_ASAN 1
#endif
#endif
#ifdef TAPEDECK_EMULATOR_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace tapedeck::kernels::emulated {

Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr std::size_t kStack = 256 << 10;

enum class Waits { nothing, for_warp, for_block, for_ever };  // for_ever: the thread has ended

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  Waits waits = Waits::nothing;
  std::uint64_t given = 0;  // to exchange()
  void* fake_stack = nullptr;
};

struct Machine {
  ucontext_t scheduler;
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* running = nullptr;
  std::vector<unsigned char> shared;
  void (*thread)(const void*) = nullptr;
  const void* context = nullptr;
};

Machine& machine() {
  static auto* one = new Machine;
  return *one;
}

void enter_fiber(Fiber& fiber) {
#ifdef TAPEDECK_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&machine().scheduler_fake_stack, fiber.stack.get(), kStack);
#endif
  swapcontext(&machine().scheduler, &fiber.context);
#ifdef TAPEDECK_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(machine().scheduler_fake_stack, nullptr, nullptr);
#endif
  (void)fiber;
}

// From a fiber back to the scheduler; returns when the scheduler continues the fiber. A fiber that has ended is never
// continued.
void leave_fiber(Fiber& fiber) {
#ifdef TAPEDECK_EMULATOR_ASAN
  const bool ended = fiber.waits == Waits::for_ever;
  __sanitizer_start_switch_fiber(ended ? nullptr : &fiber.fake_stack, machine().scheduler_stack,
                                 machine().scheduler_stack_bytes);
#endif
  swapcontext(&fiber.context, &machine().scheduler);
#ifdef TAPEDECK_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fiber.fake_stack, nullptr, nullptr);
#endif
}

void fiber_main() {
  Machine& m = machine();
#ifdef TAPEDECK_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &m.scheduler_stack, &m.scheduler_stack_bytes);
#endif
  m.thread(m.context);
  m.running->waits = Waits::for_ever;
  leave_fiber(*m.running);
}

void start_fiber(Fiber& fiber) {
  if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStack);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
  fiber.waits = Waits::nothing;
  fiber.fake_stack = nullptr;
}

void place_thread(unsigned index) {
  threadIdx = {index % blockDim.x, index / blockDim.x % blockDim.y, index / (blockDim.x * blockDim.y)};
}

[[noreturn]] void hang(const char* why) {
  std::fprintf(stderr, "emulator: block (%u, %u, %u) hangs: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, why);
  std::abort();
}

// Counts the fibers first <= i < end that wait for `what`.
unsigned waiting(unsigned first, unsigned end, Waits what) {
  unsigned count = 0;
  for (unsigned i = first; i < end; ++i) count += machine().fibers[i]->waits == what;
  return count;
}

// Opens the barriers at which all that can come have come. False if every thread has ended.
bool open_barriers(unsigned threads) {
  bool opened = false;
  for (unsigned first = 0; first < threads; first += kWarp) {
    const unsigned end = first + kWarp < threads ? first + kWarp : threads;
    const unsigned at_warp = waiting(first, end, Waits::for_warp);
    if (at_warp == 0) continue;
    if (at_warp + waiting(first, end, Waits::for_ever) != end - first || at_warp != end - first)
      hang("some lanes of a warp are at a barrier of the warp, others have ended or wait for the block");
    for (unsigned i = first; i < end; ++i) machine().fibers[i]->waits = Waits::nothing;
    opened = true;
  }
  if (opened) return true;
  const unsigned at_block = waiting(0, threads, Waits::for_block);
  if (at_block == 0) return false;
  if (at_block != threads) hang("some threads are at a barrier of the block, others have ended");
  for (unsigned i = 0; i < threads; ++i) machine().fibers[i]->waits = Waits::nothing;
  return true;
}

void run_block(unsigned threads) {
  Machine& m = machine();
  for (unsigned i = 0; i < threads; ++i) start_fiber(*m.fibers[i]);
  do {
    for (unsigned i = 0; i < threads; ++i) {
      if (m.fibers[i]->waits != Waits::nothing) continue;
      m.running = m.fibers[i].get();
      place_thread(i);
      enter_fiber(*m.running);
    }
  } while (open_barriers(threads));
}

void wait(Waits what) {
  Fiber& self = *machine().running;
  const Dim3 own = threadIdx;
  self.waits = what;
  leave_fiber(self);
  threadIdx = own;
}

unsigned linear_index() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

}  // namespace

void run_threads(Dim3 grid, Dim3 block, std::size_t shared_bytes, void (*thread)(const void*), const void* context) {
  Machine& m = machine();
  const unsigned threads = block.x * block.y * block.z;
  while (m.fibers.size() < threads) m.fibers.push_back(std::make_unique<Fiber>());
  m.thread = thread;
  m.context = context;
  blockDim = block;
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        m.shared = std::vector<unsigned char>(shared_bytes, 0xff);  // NaN, as poison
        m.shared.shrink_to_fit();
        run_block(threads);
      }
}

void wait_for_block() { wait(Waits::for_block); }
void wait_for_warp() { wait(Waits::for_warp); }
unsigned lane_index() { return linear_index() % kWarp; }
void* shared_memory() { return machine().shared.data(); }

std::uint64_t exchange(std::uint64_t bits, unsigned lane) {
  Machine& m = machine();
  const unsigned self = linear_index(), other = self / kWarp * kWarp + lane;
  m.fibers[self]->given = bits;
  wait_for_warp();
  const std::uint64_t got = other < blockDim.x * blockDim.y * blockDim.z ? m.fibers[other]->given : bits;
  wait_for_warp();
  return got;
}

}  // namespace tapedeck::kernels::emulated
