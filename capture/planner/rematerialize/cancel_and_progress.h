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

}  // namespace tapedeck
