// A hook for code that watches the eager ops of the whole process as they run. Without an observer an op pays one branch.
#pragma once

#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/graph.h>

#include <atomic>
#include <span>

namespace tapedeck {

// One call of an op whose results are there. It is reported before its node is recorded.
struct RanOp {
  const Op& op;
  std::span<detail::TensorImpl* const> results;
  Site site;  // as the tape would note it: of a backward op, the user's call in the forward pass
  Name path;  // the module that is running
  Phase phase = Phase::forward;
  bool in_place = false;  // the results are tensors that were there before
};

// An observer must live for the rest of the process, because a thread may be inside it when another thread replaces it.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // Both are called on the thread that runs the program, and must be quick and thread safe.
  virtual void ran(const RanOp& call) noexcept = 0;
  virtual void stepped() noexcept = 0;  // next_step() has begun the next random step of this thread
};

namespace detail {
extern std::atomic<OpObserver*> observer_of_ops;
void tell_observer(OpObserver& observer, const Op& op, std::span<TensorImpl* const> results, Site site, bool in_place);
}  // namespace detail

// The observer of the process; null: none. The setter returns the observer before.
inline OpObserver* op_observer() noexcept { return detail::observer_of_ops.load(std::memory_order_acquire); }
inline OpObserver* set_op_observer(OpObserver* observer) noexcept { return detail::observer_of_ops.exchange(observer); }

// Reports a call to the observer, if there is one.
inline void report_op(const Op& op, std::span<detail::TensorImpl* const> results, Site site, bool in_place) {
  if (OpObserver* const observer = op_observer()) [[unlikely]]
    detail::tell_observer(*observer, op, results, site, in_place);
}

}  // namespace tapedeck
