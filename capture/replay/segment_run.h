// What a run keeps of every segment, and how a run is stopped between them.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/kernel.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace tapedeck::replay {

// On a cache line of its own: neighbours run on different threads. Written by the thread that runs the segment, but for
// `waiting`, and for the fault, which the kernel's own loops may report from anywhere.
struct alignas(64) SegmentRun {
  std::atomic<std::int32_t> waiting{0};  // predecessors that have not finished; all of them, between runs
  std::int32_t waits_for = 0;            // predecessors
  const std::int32_t* successors = nullptr;
  std::int32_t n_successors = 0;
  NodeId faulty = kNone;      // the node at fault
  KernelFault fault;          // a segment stops at its first
  std::exception_ptr thrown;  // what a kernel or a monitor threw
  std::int32_t stopped = 0;   // first step that has not run

  // One predecessor less. True for the last of them, which also makes the segment ready to wait again.
  bool free() noexcept {
    if (waiting.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    waiting.store(waits_for, std::memory_order_relaxed);
    return true;
  }
};

// Decides, once a run, whether it is stopped or has begun to write state: never both.
class Gate {
 public:
  // `written`: an earlier part of the step wrote state, so nothing can stop this one.
  void open(const std::atomic<bool>* cancel, bool written) {
    cancel_ = cancel;
    state_.store(written ? kWriting : kOpen, std::memory_order_relaxed);
  }

  // May a segment start?
  bool enter(bool writes_state) noexcept {
    int now = state_.load(std::memory_order_acquire);
    if (now == kOpen && cancel_ && cancel_->load(std::memory_order_relaxed)) now = become(kStopped);
    if (now == kOpen && writes_state) now = become(kWriting);
    return now != kStopped;
  }
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

// How much of the cost of a step is done, told to one caller at a time and not too often.
class Meter {
 public:
  void begin(const std::function<void(double)>* tell, double done, double total);
  bool on() const { return tell_ != nullptr; }
  // False once `tell` has thrown: it is not called again.
  bool add(double cost) noexcept;
  // Says that all is done, and throws what `tell` threw.
  void end(bool complete);

 private:
  bool say(double fraction) noexcept;

  const std::function<void(double)>* tell_ = nullptr;
  double total_ = 1;
  std::atomic<double> done_{0};
  std::mutex telling_;  // guards what follows
  std::int64_t told_ns_ = 0;
  double told_ = 0;
  std::exception_ptr thrown_;
};

std::int64_t now_ns();  // of a clock that only goes forward

}  // namespace tapedeck::replay
