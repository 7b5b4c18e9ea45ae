#include <tapedeck/capture/replay/meter.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tapedeck::replay {

namespace {
constexpr std::int64_t kTellEvery = 20'000'000;  // nanoseconds
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Meter::begin(const std::function<void(double)>* tell, double done, double total) {
  tell_ = tell && *tell ? tell : nullptr;
  total_ = std::max(total, 1e-9);
  done_.store(done, std::memory_order_relaxed);
  told_ns_ = now_ns();
  told_ = 0;
  thrown_ = nullptr;
}

bool Meter::add(double cost) noexcept {
  double done = done_.load(std::memory_order_relaxed);
  while (!done_.compare_exchange_weak(done, done + cost, std::memory_order_relaxed)) {
  }
  std::unique_lock lock(telling_, std::try_to_lock);
  if (!lock) return true;
  if (thrown_) return false;
  const std::int64_t now = now_ns();
  if (now - told_ns_ < kTellEvery) return true;
  told_ns_ = now;
  return say(std::min((done + cost) / total_, 1.0));
}

// Never tells less than before: another thread may add and tell between the two acts of this one.
bool Meter::say(double fraction) noexcept {
  told_ = std::max(told_, fraction);
  try {
    (*tell_)(told_);
    return true;
  } catch (...) {
    thrown_ = std::current_exception();
    return false;
  }
}

void Meter::end(bool complete) {
  if (!tell_) return;
  const std::lock_guard lock(telling_);
  if (complete && !thrown_) say(1);
  tell_ = nullptr;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

}  // namespace tapedeck::replay
