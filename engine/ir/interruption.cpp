#include <tapedeck/engine/ir/interruption.h>

#include <tapedeck/engine/ir/error.h>

#include <utility>

namespace tapedeck {

namespace {

std::atomic<const std::atomic<bool>*> flag_of_process{nullptr};
thread_local StopCondition* condition_here = nullptr;

}  // namespace

std::atomic<int> detail::heeding{0};

void detail::stop_if_asked() {
  const std::atomic<bool>* const flag = flag_of_process.load(std::memory_order_acquire);
  if ((flag && flag->load(std::memory_order_relaxed)) || (condition_here && condition_here->must_stop()))
    throw Cancelled("interrupted");
}

HeedFlag::HeedFlag(const std::atomic<bool>& flag) noexcept {
  flag_of_process.store(&flag, std::memory_order_release);
  ++detail::heeding;
}

HeedFlag::~HeedFlag() {
  --detail::heeding;
  flag_of_process.store(nullptr, std::memory_order_release);
}

HeedHere::HeedHere(StopCondition& condition) noexcept : before_(std::exchange(condition_here, &condition)) {
  ++detail::heeding;
}

HeedHere::~HeedHere() {
  --detail::heeding;
  condition_here = before_;
}

}  // namespace tapedeck
