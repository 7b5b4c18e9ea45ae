// When a search must end before it has used its work: at a deadline, or on request.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace tapedeck {

// The conditions under which a search stops. now() is true if one of them holds.
struct SearchStop {
  const std::atomic<bool>* cancel = nullptr;
  bool has_deadline = false;
  std::chrono::steady_clock::time_point deadline = {};

  bool now() const {
    return (cancel && cancel->load(std::memory_order_relaxed)) ||
           (has_deadline && std::chrono::steady_clock::now() >= deadline);
  }
};

// The conditions that the options of place() ask for; `begun` is the time at which place() began.
inline SearchStop stop_for(const PlaceOptions& options, std::chrono::steady_clock::time_point begun) {
  constexpr double kMostSeconds = 1e8;  // the clock cannot count much more than this
  SearchStop stop{options.cancel, options.seconds > 0, {}};
  const std::chrono::duration<double> most(std::min(options.seconds, kMostSeconds));
  if (stop.has_deadline) stop.deadline = begun + std::chrono::duration_cast<std::chrono::steady_clock::duration>(most);
  return stop;
}

}  // namespace tapedeck
