#include <tapedeck/capture/planner/search_beside.h>

#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <algorithm>

namespace tapedeck {

int threads_beside() { return std::max(kernels::hardware_threads() - 1, 1); }

// One thread starts no threads of TBB, so that a thread of low priority may search: threads that TBB starts have the priority
// of the thread that starts them, and keep it for later loops and replays.
void search_beside(const std::function<void()>& work) {
  if (threads_beside() > 1) return kernels::run_on_threads(threads_beside(), work);
  const kernels::OneThreadScope loops;
  work();
}

}  // namespace tapedeck
