// Tests that a run allocates nothing after the first run, with every option. The test counts every malloc of the process, so
// operator new and the libraries count too. Sanitizers replace malloc, and only glibc gives it a second name; in other
// builds this file is empty.
#include <cstdlib>
#if !defined(TAPEDECK_SANITIZED) && defined(__GLIBC__)

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

namespace {
std::atomic<long> allocations{0};
void count() { allocations.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  count();
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  count();
  *p = __libc_memalign(alignment, bytes);
  return *p || bytes == 0 ? 0 : ENOMEM;
}
}

namespace tapedeck {
namespace {

Graph training_step() {
  return parse(R"(graph step(%x: f32[8,16], %y: i64[8], %lr: f32[]) state(%w: f32[16,10], %b: f32[10], %rng: i64[2]) {
    %d: f32[8,16] = dropout(%x, %rng) {p=0.5, path="d"}
    %h: f32[8,10] = matmul(%d, %w)
    %z: f32[8,10] = add(%h, %b)
    %l: f32[] = cross_entropy(%z, %y)
    %p: f32[8,10] = softmax(%z) {axis=1}                [phase=backward]
    %dt: f32[16,8] = transpose(%d) {axes=[1,0]}         [phase=backward]
    %gw: f32[16,10] = matmul(%dt, %p)                   [phase=backward]
    %gb: f32[10] = sum(%p) {axes=[0]}                   [phase=backward]
    %w2: f32[16,10] = sgd(%w, %gw, %lr)                 [phase=update]
    %b2: f32[10] = sgd(%b, %gb, %lr)                    [phase=update]
    %rng2: i64[2] = rng_next(%rng)                      [phase=update]
    return %l
    update %w = %w2, %b = %b2, %rng = %rng2
  })");
}

// Counts the allocations of ten runs, after two runs to warm up.
template <class Run>
long counted(Run&& run) {
  for (int i = 0; i < 2; ++i) run();
  const long before = allocations;
  for (int i = 0; i < 10; ++i) run();
  return allocations - before;
}

class ExecutorAllocation : public ::testing::TestWithParam<int> {
 protected:
  Executor executor(double segment_us = 0.001) const {
    Executor e(make_plan(graph, {.segment_us = segment_us}), {.threads = GetParam()});
    set_all(e, stand_ins(graph, 0, graph.n_inputs, 1), stand_ins(graph, graph.n_inputs, graph.n_state, 1));
    return e;
  }
  const Graph graph = training_step();
};

TEST_P(ExecutorAllocation, CountsAtAll) {
  EXPECT_GT(counted([] {
              int* volatile p = new int;
              delete p;
            }),
            0);
}

TEST_P(ExecutorAllocation, ARunAllocatesNothing) {
  for (double segment_us : {0.001, 50.0}) {
    Executor e = executor(segment_us);
    EXPECT_EQ(counted([&] { e.run(); }), 0) << "segments of " << segment_us << " us";
  }
}

TEST_P(ExecutorAllocation, NorWithBoundState) {
  Executor e = executor();
  Tensor w = default_value({DType::f32, {16, 10}}, 2, "w");
  e.bind_state("w", w);
  EXPECT_EQ(counted([&] { e.run(); }), 0);
}

TEST_P(ExecutorAllocation, NorWithInputsSetAnew) {
  Executor e = executor();
  const Tensor x = default_value({DType::f32, {8, 16}}, 2, "x");
  EXPECT_EQ(counted([&] {
              e.set_input(0, x);
              e.run();
            }),
            0);
}

TEST_P(ExecutorAllocation, NorWithTimesCancellingAndProgress) {
  Executor e = executor();
  Timeline times;
  std::atomic<bool> cancel{false};
  double done = 0;
  RunOptions options{.timeline = &times, .cancel = &cancel, .progress = [&](double f) { done = f; }};
  EXPECT_EQ(counted([&] { e.run(options); }), 0);
  EXPECT_EQ(done, 1);
}

TEST_P(ExecutorAllocation, NorInPhases) {
  Executor e = executor();
  EXPECT_EQ(counted([&] {
              e.run(Phase::forward);
              e.run(Phase::backward);
              e.run(Phase::update);
            }),
            0);
}

TEST_P(ExecutorAllocation, NorWhereMembersOfAPoolTakeTurns) {
  const auto pool = std::make_shared<ReplayPool>();
  const Graph train = parse(
      "graph train(%x: f32[64,8]) state(%w: f32[8]) { %y: f32[64,8] = add(%x, %w)\n %z: f32[64,8] = tanh(%y)\n"
      "%s: f32[8] = sum(%z) {axes=[0]}\n return %s\n update %w = %s }");
  const Graph infer =
      parse("graph infer(%x: f32[2,8]) state(%w: f32[8]) { %y: f32[2,8] = add(%x, %w)\n %z: f32[2,8] = tanh(%y)\n return %z }");
  Executor one(make_plan(train), {.threads = GetParam(), .pool = pool}),
      two(make_plan(infer), {.threads = GetParam(), .pool = pool});
  set_all(one, stand_ins(train, 0, 1, 1), stand_ins(train, 1, 1, 1));
  set_all(two, stand_ins(infer, 0, 1, 1), {});
  EXPECT_EQ(counted([&] {
              one.run();
              two.run();
            }),
            0);
}

// The graph is wide enough that every run hands segments to other threads.
TEST_P(ExecutorAllocation, NorWithManySegments) {
  std::string text = "graph wide(";
  for (int chain = 0; chain < 16; ++chain) text += (chain ? ", %x" : "%x") + std::to_string(chain) + ": f32[4096]";
  text += ") {\n";
  for (int chain = 0; chain < 16; ++chain)
    for (int i = 0; i < 8; ++i)
      text += "%v" + std::to_string(chain) + "_" + std::to_string(i) + ": f32[4096] = tanh(" +
              (i ? "%v" + std::to_string(chain) + "_" + std::to_string(i - 1) : "%x" + std::to_string(chain)) + ")\n";
  text += "return ";
  for (int chain = 0; chain < 16; ++chain) text += (chain ? ", %v" : "%v") + std::to_string(chain) + "_7";
  const Graph wide = parse(text + "\n}");
  Executor e(make_plan(wide, {.segment_us = 5}), {.threads = GetParam()});
  set_all(e, stand_ins(wide, 0, wide.n_inputs, 1), {});
  EXPECT_GT(e.plan().segments.size(), 16u);
  for (int i = 0; i < 50; ++i) e.run();  // TBB starts its threads late, and they set up memory pools of their own
  EXPECT_EQ(counted([&] { e.run(); }), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ExecutorAllocation, ::testing::Values(1, 2));

}  // namespace
}  // namespace tapedeck

#endif
