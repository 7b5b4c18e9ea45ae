// The state of an executor, by slot: given, bound to tensors of the caller, and written by steps.
//
// The values themselves belong to the shared memory (Member::state). This class holds the facts that only this executor knows:
// which values its graph updates, and which versions and writes it saw last. By these numbers it notices that the caller, or
// another member of the pool, has written the bytes since.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/segments/run_segments.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::replay {

class StateSlots {
 public:
  // Fills member.state_names. REQUIRES: `plan` and `member` outlive this.
  StateSlots(const Plan& plan, Member& member, StateSharing sharing);

  // Exactly one of the following two is called, once: fills member.state.
  void find_in_memory();                 // values that are there under these names, or new ones. They have no bytes yet
  void share(const StateSlots& parent);  // the values of the parent. Throws TypeError if one would change its size

  const std::vector<std::string>& names() const { return member_.state_names; }
  std::int32_t find(const std::string& name) const;  // UsageError if there is none of this name

  // ---- given by the caller; REQUIRES: no step is under way ----
  void check(std::int32_t slot, const Tensor& value) const;           // for set(); changes nothing
  void check_bindable(std::int32_t slot, const Tensor& value) const;  // for bind(); changes nothing
  void set(std::int32_t slot, const Tensor& value);
  void bind(std::int32_t slot, const Tensor& value);
  Tensor read(std::int32_t slot, const Buffers& buffers) const;  // a copy

  // ---- around a step ----
  // Nothing was set, bound or torn since follow(), when all values were there.
  bool ready() const { return seen_changes_ == member_.memory->changes; }
  void refuse_if_torn() const;
  void list_missing(std::vector<std::string>* missing) const;  // appends "state 'x'" for each that was never set
  void follow(Buffers& buffers);
  // The step is going to write state: results that other members returned from it are saved first.
  void begin_writing();
  // After a run, or part of one: raises the versions of bound tensors that it has written.
  void note_writes(const SegmentWalk& walk);
  // Gives the value the bytes that it had before the step. REQUIRES: the step has ended, or ends now.
  void write_back(std::int32_t slot, const Tensor& value);
  // Tears the values that the graph updates: they are half old and half new.
  void tear();

  // ---- writes by others ----
  void note_versions();  // at the end of a step, or part of one
  // The caller has written the bound tensor since note_versions().
  bool written_since(std::int32_t slot) const;
  // ... and no node of the step under way will write it any more: the bytes are the caller's until the next step.
  void give_up(std::int32_t slot) { given_up_[slot] = true; }
  // ... and nodes of the step have used the bytes that are gone now.
  void lose(std::int32_t slot) { lost_[slot] = true; }
  bool is_lost(std::int32_t slot) const { return lost_[slot]; }
  // The bytes are not as the last step, or part of one, has left them: the caller has written them.
  bool written_by_caller(std::int32_t slot) const;
  // The value was set, or written by another member, since begin_writing().
  bool overwritten(std::int32_t slot) const { return member_.state[slot]->written != stamps_[slot]; }

 private:
  const Plan& plan_;
  Member& member_;
  const StateSharing sharing_;
  std::vector<bool> updated_;                       // by slot: has an update that is not itself
  std::vector<std::uint64_t> stamps_;               // by slot: StateValue::written at begin_writing()
  std::vector<std::uint32_t> versions_;             // by slot, of bound tensors at note_versions()
  std::vector<bool> given_up_, lost_;               // by slot, in this step
  std::uint64_t seen_changes_ = ~std::uint64_t{0};  // Memory::changes at follow()
};

}  // namespace tapedeck::replay
