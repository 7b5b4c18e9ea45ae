// Runs the threads of a block as fibers of one thread of the host (simt.h, host side).
//
// The threads of a warp run in turn, and the warps in turn: a thread runs until it ends or waits, at the barrier of its block
// or of its warp. When all lanes of a warp wait for the warp, they go on; when all threads of the block wait for the block,
// they go on. A mixture is a barrier that not every thread reaches, which hangs on a device: the emulator prints it and aborts.
// Blocks run one after the other.
//
// A fiber is a stack. A thread that ends hands its fiber to the next one, so a kernel without barriers needs only one.
#include <tapedeck/kernels/cuda/simt.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
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

#if defined(__x86_64__)
// Leaves one stack for another. The stack that is left keeps the registers that a call preserves, and *left its top.
// swapcontext() does this too, but it also asks the kernel of the system for the mask of signals, which takes a hundred times
// as long.
extern "C" void tapedeck_emulator_switch(void** left, void* entered);
asm(R"(
  .text
  .hidden tapedeck_emulator_switch
  .globl tapedeck_emulator_switch
  .type tapedeck_emulator_switch, @function
tapedeck_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size tapedeck_emulator_switch, .-tapedeck_emulator_switch
)");
#endif

namespace tapedeck::kernels::emulated {

Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr std::size_t kStack = 256 << 10;
constexpr unsigned kNoThread = ~0u;

// A stack, and where it was left. That of the host is its own, and `bytes` is set when a fiber was entered from it.
struct Fiber {
#if defined(__x86_64__)
  void* top = nullptr;
#else
  ucontext_t context;
#endif
  std::unique_ptr<char[]> own;
  const void* stack = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;
};

struct Thread {
  Fiber* fiber = nullptr;           // while the thread waits
  std::uint64_t given[2] = {0, 0};  // to exchange(), in turn
  unsigned exchanges = 0;
};

struct Machine {
  Fiber host;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;  // these wait in fiber_main() for a thread to begin
  Fiber* running = nullptr;
  std::vector<Thread> threads;
  unsigned count = 0;     // of the block
  unsigned begun = 0;     // threads begin in order
  unsigned self = 0;      // the thread that runs
  unsigned at_warp = 0;   // lanes of the running warp that wait for it
  unsigned at_block = 0;  // threads that wait for the block
  std::vector<unsigned char> shared;
  void (*kernel)(const void*) = nullptr;
  const void* context = nullptr;
};

Machine& machine() {
  static auto* one = new Machine;
  return *one;
}

[[noreturn]] void hang(const char* why) {
  std::fprintf(stderr, "emulator: block (%u, %u, %u) hangs: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, why);
  std::abort();
}

// After a switch: tells the sanitizer where it is, and notes the stack of the host when it was left.
void arrive(void* fake_stack) {
#ifdef TAPEDECK_EMULATOR_ASAN
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
  Fiber& host = machine().host;
  if (host.bytes == 0) host.stack = stack, host.bytes = bytes;
#else
  (void)fake_stack;
#endif
}

// Continues another fiber; returns when this one is continued.
void go_to(Fiber& next) {
  Fiber& self = *machine().running;
  machine().running = &next;
#ifdef TAPEDECK_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&self.fake_stack, next.stack, next.bytes);
#endif
#if defined(__x86_64__)
  tapedeck_emulator_switch(&self.top, next.top);
#else
  swapcontext(&self.context, &next.context);
#endif
  arrive(self.fake_stack);
}

// The thread that runs after `self`, which has ended or waits; opens a barrier that all have reached. kNoThread: all have
// ended.
unsigned next_thread() {
  Machine& m = machine();
  const unsigned first = m.self / kWarp * kWarp, end = first + kWarp < m.count ? first + kWarp : m.count;
  if (m.self + 1 < end) return m.self + 1;
  if (m.at_warp == end - first) {
    m.at_warp = 0;
    return first;
  }
  if (m.at_warp > 0) hang("some lanes of a warp are at a barrier of the warp, others have ended or wait for the block");
  if (end < m.count) return end;
  if (m.at_block == m.count) {
    m.at_block = 0;
    return 0;
  }
  if (m.at_block > 0) hang("some threads are at a barrier of the block, others have ended");
  return kNoThread;
}

void place_thread(unsigned index) {
  machine().self = index;
  threadIdx = {index % blockDim.x, index / blockDim.x % blockDim.y, index / (blockDim.x * blockDim.y)};
}

// A fiber does this for ever: it runs the next thread that has not begun.
void fiber_main() {
  Machine& m = machine();
  arrive(nullptr);
  for (;;) {
    place_thread(m.begun++);
    m.kernel(m.context);
    const unsigned next = next_thread();
    if (next != kNoThread && next == m.begun) continue;
    m.idle.push_back(m.running);
    go_to(next == kNoThread ? m.host : *m.threads[next].fiber);
  }
}

std::unique_ptr<Fiber> new_fiber() {
  auto fiber = std::make_unique<Fiber>();
  fiber->own.reset(new char[kStack]);  // not set to zero: most of it is never touched
  fiber->stack = fiber->own.get();
  fiber->bytes = kStack;
#if defined(__x86_64__)
  // As tapedeck_emulator_switch() leaves a stack: six registers, the address at which it goes on, and the one to which that
  // returns.
  void (*const begin)() = &fiber_main;
  auto top = reinterpret_cast<std::uintptr_t>(fiber->own.get() + kStack) / 16 * 16 - 8 * sizeof(void*);
  fiber->top = reinterpret_cast<void*>(top);
  std::memset(fiber->top, 0, 8 * sizeof(void*));
  std::memcpy(static_cast<char*>(fiber->top) + 6 * sizeof(void*), &begin, sizeof begin);
#else
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->own.get();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, fiber_main, 0);
#endif
  return fiber;
}

// A fiber that begins the next thread.
Fiber& idle_fiber() {
  Machine& m = machine();
  if (m.idle.empty()) {
    m.fibers.push_back(new_fiber());
    m.idle.push_back(m.fibers.back().get());
  }
  Fiber& fiber = *m.idle.back();
  m.idle.pop_back();
  return fiber;
}

// The running thread has come to a barrier, where `arrived` threads wait.
void wait(unsigned& arrived) {
  Machine& m = machine();
  const unsigned self = m.self;
  ++arrived;
  const unsigned next = next_thread();
  if (next == self) return;
  m.threads[self].fiber = m.running;
  go_to(next == m.begun ? idle_fiber() : *m.threads[next].fiber);
  place_thread(self);
}

void run_block() {
  Machine& m = machine();
  m.begun = m.at_warp = m.at_block = 0;
  m.host.bytes = 0;
  m.running = &m.host;
  go_to(idle_fiber());
}

}  // namespace

void run_threads(Dim3 grid, Dim3 block, std::size_t shared_bytes, void (*thread)(const void*), const void* context) {
  Machine& m = machine();
  m.count = block.x * block.y * block.z;
  if (m.count == 0) return;
  m.threads.assign(m.count, {});
  m.kernel = thread;
  m.context = context;
  blockDim = block;
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        m.shared = std::vector<unsigned char>(shared_bytes, 0xff);  // NaN, as poison
        m.shared.shrink_to_fit();
        run_block();
      }
}

void wait_for_block() { wait(machine().at_block); }
void wait_for_warp() { wait(machine().at_warp); }
unsigned lane_index() { return machine().self % kWarp; }
void* shared_memory() { return machine().shared.data(); }

// A lane gives its bits in two places in turn: no lane comes to the next exchange but one before all have read the bits of this
// one.
std::uint64_t exchange(std::uint64_t bits, unsigned lane) {
  Machine& m = machine();
  const unsigned self = m.self, other = self / kWarp * kWarp + lane;
  const unsigned place = m.threads[self].exchanges++ % 2;
  m.threads[self].given[place] = bits;
  wait_for_warp();
  return other < m.count ? m.threads[other].given[place] : bits;
}

}  // namespace tapedeck::kernels::emulated
