// How far a piece of work is, told to the UI at most ten times a second.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace tapedeck::viewer {

// Any thread may call it.
class ToldProgress {
 public:
  double share() const { return share_.load(); }  // 0 to 1
  void reset() { share_ = 0; }
  // Calls `wake` unless it was called by this function a moment ago.
  void tell(double share, const std::function<void()>& wake) {
    share_ = share;
    constexpr auto kPause = std::chrono::steady_clock::duration(std::chrono::milliseconds(100)).count();
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now - told_ < kPause) return;
    told_ = now;
    wake();
  }

 private:
  std::atomic<double> share_{0};
  std::atomic<std::chrono::steady_clock::rep> told_{0};  // when `wake` was called last
};

}  // namespace tapedeck::viewer
