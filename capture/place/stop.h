// When a search is to end before it has done its work.
#pragma once

#include <atomic>
#include <chrono>

namespace tapedeck {

struct SearchStop {
  const std::atomic<bool>* cancel = nullptr;
  bool has_deadline = false;
  std::chrono::steady_clock::time_point deadline = {};

  bool now() const {
    return (cancel && cancel->load(std::memory_order_relaxed)) || (has_deadline && std::chrono::steady_clock::now() >= deadline);
  }
};

}  // namespace tapedeck
