// The only door to threads: every parallel loop of every kernel calls parallel_for.
//
// A loop runs in the TBB arena of the calling thread: the arena of the replay executor, or the one that has as many threads as
// set_thread_limit() says (thread_limit.h). Loops are
// isolated: a thread that waits for its own loop does not start unrelated tasks. Loops are annotated for the thread sanitizer,
// which does not see inside TBB. The grain is a function of the work, never of the number of threads. So every machine cuts the
// same pieces and computes the same bits.
#pragma once

#include <cstdint>

namespace tapedeck::kernels {

// A loop body as a plain function and a context pointer, so that this header needs no TBB.
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

// Calls body(context, begin, end) on [0, n) in pieces of `grain` items; the last piece may be shorter. Each piece runs exactly
// once, in any order, perhaps on several threads at the same time. A loop of a single piece runs at once on the calling thread.
// Throws only if body throws.
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

// The grain of a loop whose items cost about `ns_per_item` nanoseconds each: a piece takes roughly 20 microseconds.
constexpr std::int64_t grain_for(double ns_per_item) {
  const double grain = 20000.0 / (ns_per_item > 0.01 ? ns_per_item : 0.01);
  return grain < 1 ? 1 : static_cast<std::int64_t>(grain);
}

// While an object of this class lives, the loops of its thread run all their pieces on that thread alone. A replay uses it for
// kernels that run while other kernels keep the other threads busy. The pieces and the bits stay the same. Scopes nest.
class OneThreadScope {
 public:
  explicit OneThreadScope(bool one_thread = true);
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;

 private:
  bool before_;
};

// While an object of this class lives, the loops of its thread run where the thread is, and not in the arena of the limit that
// set_thread_limit() sets. Every task that has been given its threads already holds one: pieces of loops, searches, replays.
class PlacedScope {
 public:
  PlacedScope();
  ~PlacedScope();
  PlacedScope(const PlacedScope&) = delete;

 private:
  bool before_;
};

// A fork and a join for the thread sanitizer: writes before annotate_release(token) are visible after annotate_acquire(token).
// Ordinary builds do nothing here.
void annotate_release(void* token);
void annotate_acquire(void* token);

}  // namespace tapedeck::kernels
