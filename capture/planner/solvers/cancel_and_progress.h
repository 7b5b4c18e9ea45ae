// How a caller watches a planning under way: the caller can cancel it, and it tells how far it is.
#pragma once

#include <atomic>
#include <functional>

namespace tapedeck {

struct Watch {
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double)> progress;

  void check() const;  // throws Cancelled
  void report(double done) const;
};

// Progress that never goes back: what is less than a report before is left out. Strategies choose one after another, or at
// once, and each of them reports how far it is itself.
std::function<void(double)> never_less(std::function<void(double)> progress);

}  // namespace tapedeck
