// The recordings of one captured step, and which of them a call belongs to.
#pragma once

#include <tapedeck/capture/step/explain_recordings.h>
#include <tapedeck/capture/step/recording.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

class RecordingCache {
 public:
  // The recording for these inputs in the surroundings of now; a new one, which holds the reason for it, if there is none. The
  // oldest goes when there are too many. Null if another recording would not help: since the last replay, many recordings were
  // made because the numbers of draws in the random step were new in every call.
  Recording* find(const std::vector<Tensor>& inputs);
  void clear() { all_.clear(); }

  // Recordings hold handles to the tensors of the user. A recording takes a change in the number of handles for a sign that the
  // user let one go. So after handles were added or dropped by recordings, the numbers are noted again: of all recordings, or,
  // where only some had the right number before, of these.
  void note_handles();
  // Lets every recording remember that a handle was let go before a recording begins, because note_handles() follows it.
  void keep_suspicions();
  std::vector<Recording*> without_doubts();

  // Drops the recordings that were made from other sizes and are the last owner of their executor, except `kept`. Calls
  // dropped(recording) for each of them before.
  template <class F>
  void drop_unused(const Recording& kept, F&& dropped) {
    std::erase_if(all_, [&](const std::unique_ptr<Recording>& r) {
      const bool unused = r.get() != &kept && r->made && r->executor.use_count() == 1;
      if (unused) dropped(r.get());
      return unused;
    });
  }

  std::vector<Explanation> explanations() const;

 private:
  Recording* known(const Surroundings& now, const std::vector<Tensor>& inputs) const;

  int for_new_draws_ = 0;  // recordings made because of numbers of draws, since the last call that could replay
  std::vector<std::unique_ptr<Recording>> all_;  // oldest first
};

}  // namespace tapedeck
