// Decides once in a run: either the run is stopped, or it has begun to write state. Never both. Segments ask before they
// start and before their first instruction that writes state, and loops before each pass.
#pragma once

#include <tapedeck/engine/ir/interruption.h>

#include <atomic>

namespace tapedeck::replay {

class Gate final : public StopCondition {
 public:
  // `written`: an earlier part of the step wrote state, so nothing can stop this one.
  void open(const std::atomic<bool>* cancel, bool written) {
    cancel_ = cancel;
    state_.store(written ? kWriting : kOpen, std::memory_order_relaxed);
  }

  // May a segment start, or the instruction that writes state?
  bool enter(bool writes_state) noexcept {
    int now = state_.load(std::memory_order_acquire);
    if (now == kOpen && cancel_ && cancel_->load(std::memory_order_relaxed)) now = become(kStopped);
    if (now == kOpen && writes_state) now = become(kWriting);
    return now != kStopped;
  }
  bool must_stop() noexcept override { return !enter(false); }
  void stop() noexcept { become(kStopped); }
  bool stopped() const noexcept { return state_.load(std::memory_order_acquire) == kStopped; }

 private:
  enum : int { kOpen, kWriting, kStopped };

  int become(int next) noexcept {
    int now = kOpen;
    return state_.compare_exchange_strong(now, next, std::memory_order_acq_rel) ? next : now;
  }

  std::atomic<int> state_{kOpen};
  const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace tapedeck::replay
