// parallel_for over oneTBB. The grain alone cuts the pieces; TBB only decides when and on which thread each piece runs.
#include <tapedeck/kernels/parallel.h>

#include <tapedeck/kernels/arena_of_limit.h>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
#define TAPEDECK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAPEDECK_TSAN 1
#endif
#endif

#ifdef TAPEDECK_TSAN
extern "C" void __tsan_acquire(void* token);
extern "C" void __tsan_release(void* token);
#endif

namespace tapedeck::kernels {

#ifdef TAPEDECK_TSAN
void annotate_release(void* token) { __tsan_release(token); }
void annotate_acquire(void* token) { __tsan_acquire(token); }
#else
void annotate_release(void*) {}
void annotate_acquire(void*) {}
#endif

namespace {
thread_local bool one_thread = false;
thread_local bool is_placed = false;
}  // namespace

OneThreadScope::OneThreadScope(bool wanted) : before_(one_thread) { one_thread = before_ || wanted; }
OneThreadScope::~OneThreadScope() { one_thread = before_; }

PlacedScope::PlacedScope() : before_(is_placed) { is_placed = true; }
PlacedScope::~PlacedScope() { is_placed = before_; }

void parallel_for(std::int64_t n, std::int64_t grain, RangeBody body, void* context) {
  if (n <= 0) return;
  const std::int64_t step = std::max<std::int64_t>(grain, 1);
  const std::int64_t pieces = (n - 1) / step + 1;
  auto run_piece = [&](std::int64_t k) { body(context, k * step, std::min(n, (k + 1) * step)); };
  tbb::task_arena* const arena = is_placed ? nullptr : arena_of_limit();
  const int threads = arena ? arena->max_concurrency() : tbb::this_task_arena::max_concurrency();
  if (pieces == 1 || one_thread || threads == 1) {
    for (std::int64_t k = 0; k < pieces; ++k) run_piece(k);
    return;
  }
  char forked = 0;
  char joined = 0;
  annotate_release(&forked);
  const auto run_pieces = [&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, pieces, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          const PlacedScope placed;
          annotate_acquire(&forked);
          for (std::int64_t k = range.begin(); k < range.end(); ++k) run_piece(k);
          annotate_release(&joined);
        },
        tbb::simple_partitioner{});
  };
  if (arena)
    arena->execute([&] { tbb::this_task_arena::isolate(run_pieces); });
  else
    tbb::this_task_arena::isolate(run_pieces);
  annotate_acquire(&joined);
}

}  // namespace tapedeck::kernels
