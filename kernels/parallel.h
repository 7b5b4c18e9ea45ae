// The one door to threads: every parallel loop of a kernel goes through here.
//
// Loops run in the caller's TBB arena (the replay executor's, or TBB's default), are isolated (a thread that waits for its own
// loop does not pick up foreign tasks), and are annotated for the thread sanitizer, which does not see inside TBB. The grain is
// a function of the work, never of the number of threads, so the pieces - and with them the bits - are the same on any machine.
#pragma once

#include <cstdint>

namespace tapedeck::kernels {

// A loop body as a plain function and a context, so that the header needs no templates of TBB.
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

// Calls body on [0, n) in pieces of `grain` (the last may be shorter), each piece exactly once, in any order, concurrently.
// A single piece runs at once on the calling thread. Never throws if body does not.
void parallel_for(std::int64_t n, std::int64_t grain, RangeBody body, void* context);

template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= grain) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  parallel_for(
      n, grain, [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<F*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Elements per piece for a loop that costs about `ns_per_item`: pieces of roughly 20 microseconds.
constexpr std::int64_t grain_for(double ns_per_item) {
  const double grain = 20000.0 / (ns_per_item > 0.01 ? ns_per_item : 0.01);
  return grain < 1 ? 1 : static_cast<std::int64_t>(grain);
}

// While one lives, loops that its thread opens run piece by piece on that thread alone: for a kernel whose neighbours keep the
// other threads busy. Same pieces, same bits. Scopes nest.
class OneThreadScope {
 public:
  explicit OneThreadScope(bool one_thread = true);
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;

 private:
  bool before_;
};

// Fork and join, for the sanitizer: a write before fork() is seen after the matching join_task(). No-ops in ordinary builds.
void annotate_release(void* token);
void annotate_acquire(void* token);

}  // namespace tapedeck::kernels
