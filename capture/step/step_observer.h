// A hook for code that watches the captured steps of the whole process. Without an observer a call pays one branch.
#pragma once

#include <tapedeck/capture/step/captured_step.h>

#include <atomic>

namespace tapedeck {

// An observer must live for the rest of the process, because a thread may be inside it when another thread replaces it.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // A call of the step is over. `planned`: it made a new plan; `replayed`: it was a replay, so its ops were not seen by an
  // observer of ops. Called on the thread of the call, outside of captures.
  virtual void called(const CapturedStep& step, bool planned, bool replayed) noexcept = 0;
};

namespace detail {
inline constinit std::atomic<StepObserver*> observer_of_steps{nullptr};
}  // namespace detail

inline StepObserver* step_observer() noexcept { return detail::observer_of_steps.load(std::memory_order_acquire); }
inline StepObserver* set_step_observer(StepObserver* observer) noexcept { return detail::observer_of_steps.exchange(observer); }

}  // namespace tapedeck
