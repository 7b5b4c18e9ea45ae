// What a recording of a step relied on beside the types of its inputs. Where it no longer holds, eager code would do something
// else, so the step is recorded again.
#pragma once

#include <tapedeck/capture/record/capture.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

// The modes of the thread at a call.
struct Surroundings {
  bool grad_enabled = true, autocast = false;
  DType autocast_dtype = DType::bf16;
  Name path;
  std::uint64_t training = 0;               // training_modes()
  const detail::TensorImpl* rng = nullptr;  // the thread's random state

  static Surroundings now();
  // Why what was recorded in `then` does not hold here; empty if it does. `draws`: it read the random state.
  std::string difference(const Surroundings& then, bool draws) const;
};

bool draws(const Captured& captured);  // whether it reads a random state

// How often a step draws under which paths, before and after it begins a new random step itself: the bits depend on these
// counts.
class Draws {
 public:
  Draws() = default;
  explicit Draws(const Graph& captured);
  std::string misfit() const;  // why the thread's counts are not those the step was recorded with; empty if they are
  void advance() const;        // the thread's counts after a replay, as after an eager call

 private:
  void drawn(Name path, std::int32_t first, std::int32_t after);
  void count(const Graph& graph);
  using Counts = std::vector<std::pair<Name, std::int32_t>>;
  Counts before_;       // of the paths drawn under, at the beginning
  Counts after_;        // at the end
  bool steps_ = false;  // next_step() was called inside: other counts start anew
};

// Why the captured program is not what eager code would do now: a tensor needs a gradient that did not, has one that had none,
// ... Empty if it is.
std::string misfit(const Captured& captured, const std::vector<Tensor>& inputs);

// Signs that the user's tensors are not those of the recording any more: a constant was modified, or a handle to state was let
// go, so that another tensor may stand in its place. Cheap to look for, and no proof: only recording again shows what is so.
class Watchlist {
 public:
  void note(const Captured& captured);
  void note_handles(const Captured& captured);            // after any recording: it may hold handles of its own
  std::string suspicion(const Captured& captured) const;  // empty: none

 private:
  std::vector<std::int32_t> handles_;    // by state
  std::vector<std::uint32_t> versions_;  // by constant
};

}  // namespace tapedeck
