// The modes of the running thread: which tape records, whether gradients are wanted, and the module path.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>

#include <memory>
#include <unordered_map>

namespace tapedeck {

class Recorder;
struct VjpCalls;

struct ThreadState {
  Recorder* tape = nullptr;       // the tape of the open capture, or else `own`
  std::unique_ptr<Recorder> own;  // the thread's eager tape
  bool grad_enabled = true;
  bool abstract = false;
  bool autocast = false;  // kLowPrecision ops get operands of autocast_dtype, kFullPrecision ops get f32
  DType autocast_dtype = DType::bf16;
  Phase phase = Phase::forward;
  NodeId twin = kNone;  // the forward node whose vjp is running
  Name path;
  Site site;                    // the call of the outermost module, if one is running; its ops report this site
  std::int32_t region = kNone;  // the open checkpoint region
  VjpCalls* calls = nullptr;    // set while a vjp runs in two parts (derive_saved.h)
  Tensor rng;                   // the random state, i64[2]: seed, step
  std::unordered_map<const void*, std::int32_t> draws;  // draws in this step, by module path

  ThreadState();
  ~ThreadState();
};

ThreadState& thread_state();
ThreadState* thread_state_if_any() noexcept;  // null before the first use and after the end of the thread

// The path of the next draw: the module path and the number of the draw in this step, "fc.drop#0".
Name next_draw_path();

// Sets a member of the thread's state, and restores the old value at the end of the scope.
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
