// Work on a chosen number of threads: the loops of kernels/parallel.h that `work` runs share `threads` threads.
//
// An ordinary loop runs on all threads of its caller, or, on a thread that no loop, replay or search runs on, on as many as
// set_thread_limit() says. A search whose user asked for two threads puts its loops in here. As in parallel.h, the hand-over is
// annotated for the thread sanitizer, which does not see inside TBB.
#pragma once

#include <type_traits>

namespace tapedeck::kernels {

// The number of threads that TBB uses unless told otherwise: the logical cores that this process may use. At least 1.
int hardware_threads();

// The number of threads for loops and replays that were given none: hardware_threads() until set_thread_limit() sets another.
// A limit of 0 sets hardware_threads() again. It holds for loops that begin later. Thread safe. REQUIRES: 0 to kMostThreads.
inline constexpr int kMostThreads = 1024;
int thread_limit();
void set_thread_limit(int threads);

// The place of this thread among the workers that TBB started for loops and replays; 0 on a thread that TBB did not start.
int worker_place();

// Calls work(context) once, and returns when it has ended. The call may run on another thread than the caller's. Throws what
// `work` throws. Cost: some microseconds.
void run_on_threads(int threads, void (*work)(void* context), void* context);

template <class F>
void run_on_threads(int threads, F&& f) {
  using Work = std::remove_reference_t<F>;
  run_on_threads(
      threads, [](void* context) { (*static_cast<Work*>(context))(); }, const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace tapedeck::kernels
