// The conditions that a recording of a step relies on beside the types of its inputs. Where a condition no longer holds, eager
// code would compute something else, so the step is recorded again.
#pragma once

#include <tapedeck/capture/record/capture.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

class EagerDevice;

// The modes of the thread at a call.
struct Surroundings {
  bool grad_enabled = true, autocast = false;
  DType autocast_dtype = DType::bf16;
  Name path;
  std::uint64_t training = 0;               // training_modes()
  std::uint64_t hooks = 0;                  // module_hooks()
  const detail::TensorImpl* rng = nullptr;  // the thread's random state

  static Surroundings now();
  // Says why the recording made under `then` does not hold under these modes; empty if it holds. `draws`: the recording reads
  // the random state.
  std::string difference(const Surroundings& then, bool draws) const;
};

// The device of the first tensor that is on one; null if none is.
EagerDevice* first_device(const std::vector<Tensor>& tensors);

bool draws(const Captured& captured);  // whether it reads a random state

// How many draws the thread has made under each path when a step begins, and how many when the step ends. The bits of the draws
// depend on these counts.
class Draws {
 public:
  Draws() = default;
  explicit Draws(const Graph& captured);
  std::string misfit() const;  // why the counts of the thread are not the recorded ones; empty if they are
  void advance() const;        // sets the counts of the thread after a replay to what an eager call would leave

 private:
  void drawn(Name path, std::int32_t first, std::int32_t after);
  void count(const Graph& graph);
  using Counts = std::vector<std::pair<Name, std::int32_t>>;
  Counts before_;       // when the step begins; only of paths that it draws under before any next_step() of its own
  Counts after_;        // when the step ends; counted from its last next_step(), if it calls that
  bool steps_ = false;  // the step calls next_step(), so later draws count from zero
};

// Says why eager code would no longer compute what the recorded program computes: for instance, a tensor needs a gradient now.
// Empty if it would.
std::string misfit(const Captured& captured, const std::vector<Tensor>& inputs);

// Signs that the user's tensors may have changed since the recording: a constant was modified, or the user let go of a handle
// to a constant or to state, so another tensor may have taken its place. The signs are cheap to find and prove nothing; only
// another recording does.
class Watchlist {
 public:
  void note(const Captured& captured);
  void note_handles(const Captured& captured);      // call it after any recording, because a recording holds handles too
  std::string suspicion(const Captured& captured);  // empty: none
  // Keeps a sign that there is now, until note(). Call it before note_handles(), which would lose the sign.
  void keep_suspicion(const Captured& captured);

 private:
  std::string kept_;
  std::vector<std::int32_t> handles_;           // by state
  std::vector<std::int32_t> constant_handles_;  // by constant: the most that a call has found
  std::vector<std::uint32_t> versions_;         // by constant
};

}  // namespace tapedeck
