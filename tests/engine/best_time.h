// Times that a test may judge by: the best of three, since a busy machine only ever makes one longer.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace tapedeck::testing {

// Under a sanitizer every access costs extra, unevenly: what is timed still runs, once, and its time is not judged.
#ifdef TAPEDECK_SANITIZED
inline constexpr bool kTimesCount = false;
#else
inline constexpr bool kTimesCount = true;
#endif

// Of f(), in seconds.
template <class F>
double best_time(F&& f) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < (kTimesCount ? 3 : 1); ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace tapedeck::testing
