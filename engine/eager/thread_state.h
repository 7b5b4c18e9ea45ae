// The modes of the running thread: which tape records, whether gradients are wanted, where in the model we are.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>

#include <memory>
#include <unordered_map>

namespace tapedeck {

class Recorder;
struct VjpCalls;

struct ThreadState {
  Recorder* tape = nullptr;       // the open capture's, or the thread's own
  std::unique_ptr<Recorder> own;  // the thread's eager tape
  bool grad_enabled = true;
  bool abstract = false;
  bool autocast = false;  // autocast_dtype says to what
  DType autocast_dtype = DType::bf16;
  Phase phase = Phase::forward;
  NodeId twin = kNone;  // forward node whose vjp is running
  Name path;
  Site site;                                            // of the module call around, if any: what its ops report
  std::int32_t region = kNone;                          // open checkpoint region
  VjpCalls* calls = nullptr;                            // a vjp is running in two parts (derive_saved.h)
  Tensor rng;                                           // i64[2]: seed, step
  std::unordered_map<const void*, std::int32_t> draws;  // per path, in this step

  ThreadState();
  ~ThreadState();
};

ThreadState& thread_state();
ThreadState* thread_state_if_any() noexcept;  // null before the first use and after the thread's end

// The path of the next draw: module path and occurrence in the step, "fc.drop#0".
Name next_draw_path();

// Sets a member of the thread's state for a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& target, T value) : target_(target), before_(std::move(target)) { target_ = std::move(value); }
  ~Scoped() { target_ = std::move(before_); }
  Scoped(const Scoped&) = delete;

 private:
  T& target_;
  T before_;
};

}  // namespace tapedeck
