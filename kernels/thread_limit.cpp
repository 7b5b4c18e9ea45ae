// run_on_threads over the arenas of oneTBB.
#include <tapedeck/kernels/thread_limit.h>

#include <tapedeck/kernels/arena_of_limit.h>
#include <tapedeck/kernels/parallel.h>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace tapedeck::kernels {

int hardware_threads() { return std::max(tbb::info::default_concurrency(), 1); }

namespace {

// The arenas for the limits that were set so far. They stay, because a loop may be running in one. Each is some hundred bytes.
struct LimitArenas {
  std::mutex mutex;
  std::map<int, tbb::task_arena> by_threads;
};

std::atomic<int> limit{0};                           // 0: the hardware's
std::atomic<tbb::task_arena*> limit_arena{nullptr};  // null: TBB's own arena, which has the threads of the hardware

LimitArenas& limit_arenas() {
  static auto* arenas = new LimitArenas;  // never destroyed: loops may run while the process ends
  return *arenas;
}

}  // namespace

int thread_limit() {
  const int set = limit.load(std::memory_order_relaxed);
  return set > 0 ? set : hardware_threads();
}

void set_thread_limit(int threads) {
  LimitArenas& arenas = limit_arenas();
  const std::lock_guard lock(arenas.mutex);
  const bool is_own = threads == 0 || threads == hardware_threads();
  limit_arena.store(is_own ? nullptr : &arenas.by_threads.try_emplace(threads, threads).first->second,
                    std::memory_order_release);
  limit.store(threads, std::memory_order_relaxed);
}

tbb::task_arena* arena_of_limit() { return limit_arena.load(std::memory_order_acquire); }

int worker_place() { return std::max(tbb::this_task_arena::current_thread_index(), 0); }

void run_on_threads(int threads, void (*work)(void* context), void* context) {
  char forked = 0;
  char joined = 0;
  annotate_release(&forked);
  tbb::task_arena(std::max(threads, 1)).execute([&] {
    const PlacedScope placed;
    annotate_acquire(&forked);
    work(context);
    annotate_release(&joined);
  });
  annotate_acquire(&joined);
}

}  // namespace tapedeck::kernels
