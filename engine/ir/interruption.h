// How work that may take long finds out that nobody waits for it any more. It calls stop_if_interrupted() now and then, which
// throws Cancelled; so a reader, a recording, a pass or a loop needs no parameter for it.
//
//     the process    HeedFlag     the tool: Ctrl-C
//     this thread    HeedHere     a replay: RunOptions::cancel, for the loops inside a node
#pragma once

#include <tapedeck/kernels/export.h>

#include <atomic>

namespace tapedeck TAPEDECK_API {

// While it lives, work of this process stops once the flag is up. One at a time. REQUIRES: the flag outlives it.
class HeedFlag {
 public:
  explicit HeedFlag(const std::atomic<bool>& flag) noexcept;
  ~HeedFlag();
  HeedFlag(const HeedFlag&) = delete;
  HeedFlag& operator=(const HeedFlag&) = delete;
};

class StopCondition {
 public:
  virtual bool must_stop() noexcept = 0;

 protected:
  ~StopCondition() = default;
};

// While it lives, work of this thread stops once the condition says so.
class HeedHere {
 public:
  explicit HeedHere(StopCondition& condition) noexcept;
  ~HeedHere();
  HeedHere(const HeedHere&) = delete;
  HeedHere& operator=(const HeedHere&) = delete;

 private:
  StopCondition* before_;
};

namespace detail {
extern std::atomic<int> heeding;  // flags and conditions that live now
void stop_if_asked();
}  // namespace detail

// Costs one load where nothing is to be heeded. Throws Cancelled.
inline void stop_if_interrupted() {
  if (detail::heeding.load(std::memory_order_relaxed) != 0) detail::stop_if_asked();
}

}  // namespace TAPEDECK_API
