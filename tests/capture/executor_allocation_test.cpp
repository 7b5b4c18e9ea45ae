// A serial run allocates nothing: every operator new on this thread is counted. (TBB allocates tasks of its own when threads share
// the work, so that is not asked of parallel runs. The sanitizers want operator new for themselves, so this file is empty there.)
#ifndef TAPEDECK_SANITIZED

#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/engine/text.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {
thread_local long allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
// Not inlined: the compiler would see free() meet what it takes for the library's own new, and warn.
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace tapedeck {
namespace {

TEST(ExecutorAllocation, ASerialRunAllocatesNothing) {
  const Graph g = parse(R"(graph step(%x: f32[8,16], %y: i64[8], %lr: f32[]) state(%w: f32[16,10], %b: f32[10], %rng: i64[2]) {
    %d: f32[8,16] = dropout(%x, %rng) {p=0.5, path="d"}
    %h: f32[8,10] = matmul(%d, %w)
    %z: f32[8,10] = add(%h, %b)
    %l: f32[] = cross_entropy(%z, %y)
    %p: f32[8,10] = softmax(%z) {axis=1}
    %dt: f32[16,8] = transpose(%d) {axes=[1,0]}
    %gw: f32[16,10] = matmul(%dt, %p)
    %gb: f32[10] = sum(%p) {axes=[0]}
    %w2: f32[16,10] = sgd(%w, %gw, %lr)
    %b2: f32[10] = sgd(%b, %gb, %lr)
    %rng2: i64[2] = rng_next(%rng)
    return %l
    update %w = %w2, %b = %b2, %rng = %rng2
  })");
  Executor executor(make_plan(g));
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
    const Tensor value = default_value(g.values[v].type, 1, g.value_name(v));
    if (g.is_input(v)) executor.set_input(v, value);
    else executor.set_state(g.value_name(v), value);
  }
  executor.run();  // TBB enters the arena for the first time
  const long before = allocations;
  for (int i = 0; i < 10; ++i) executor.run();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace tapedeck

#endif
