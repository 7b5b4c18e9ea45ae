// The modes of the running thread: which tape records, whether gradients are wanted, and the module path.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/names.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace tapedeck {

class EagerDevice;
class Recorder;
struct VjpCalls;

// The random stream of a thread (random_state.cpp).
struct RandomStream {
  Tensor state;                        // i64[2]: the seed of the stream, and the step; undefined until the thread first draws
  std::uint64_t seeding = 0;           // the number of the manual_seed() that `state` follows
  std::optional<std::uint64_t> given;  // the number that use_random_stream() gave the thread
};

struct ThreadState {
  Recorder* tape = nullptr;       // the tape of the open capture, or else `own`
  std::unique_ptr<Recorder> own;  // the thread's eager tape
  bool grad_enabled = true;
  bool abstract = false;
  bool autocast = false;  // kLowPrecision ops get operands of autocast_dtype, kFullPrecision ops get f32
  DType autocast_dtype = DType::bf16;
  EagerDevice* device = nullptr;  // makes the results of ops that have no operands and of draws; null: the host
  Phase phase = Phase::forward;
  NodeId twin = kNone;  // the forward node whose vjp is running
  Name path;
  Site site;                    // the call of the outermost module, if one is running; its ops report this site
  std::int32_t region = kNone;  // the open checkpoint region
  VjpCalls* calls = nullptr;    // set while a vjp runs in two parts (derive_saved.h)
  RandomStream random;
  Tensor pass_rng;  // inside a pass of a loop: the random state of this pass, from which ops draw instead
  std::unordered_map<const void*, std::int32_t> draws;  // draws in this step, by module path

  ThreadState();
  ~ThreadState();
};

ThreadState& thread_state();
ThreadState* thread_state_if_any() noexcept;  // null before the first use and after the end of the thread

// The path of the next draw: the module path and the number of the draw in this step, "fc.drop#0". Its name is borrowed,
// because eager code may draw any number of times in one step: a tape that records the draw makes a name of its own.
class DrawPath {
 public:
  DrawPath();
  DrawPath(const DrawPath&) = delete;
  Name name() const { return borrowed_name(text_); }

 private:
  std::string text_;
};

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
