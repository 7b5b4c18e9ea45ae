// run_on_threads over the arenas of oneTBB.
#include <tapedeck/kernels/thread_limit.h>

#include <tapedeck/kernels/parallel.h>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace tapedeck::kernels {

int hardware_threads() { return std::max(tbb::info::default_concurrency(), 1); }

int worker_place() { return std::max(tbb::this_task_arena::current_thread_index(), 0); }

void run_on_threads(int threads, void (*work)(void* context), void* context) {
  char forked = 0;
  char joined = 0;
  annotate_release(&forked);
  tbb::task_arena(std::max(threads, 1)).execute([&] {
    annotate_acquire(&forked);
    work(context);
    annotate_release(&joined);
  });
  annotate_acquire(&joined);
}

}  // namespace tapedeck::kernels
