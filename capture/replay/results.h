// The results of an executor: its outputs, and any value of the graph while its bytes are there. All are handed out as copies.
//
// An output may lie in state. Before that state is written again, by whichever member of the pool, the output is copied out and
// kept here. The caller's own writes to a bound tensor come without warning: an output that lay there is refused from then on.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/byte_uses.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/observed_run.h>
#include <tapedeck/capture/replay/state_slots.h>
#include <tapedeck/engine/eager/tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck::replay {

class Results {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  Results(const Plan& plan, const Member& member, const Buffers& buffers, const InputSlots& inputs, const StateSlots& states,
          const ObservedRun& observed, StepProgress& progress, ByteUses& uses);

  const std::vector<std::string>& names() const { return names_; }
  std::size_t find(const std::string& name) const;  // UsageError if there is none of this name

  // From now on outputs are tensors of this device.
  void give_on(std::string device) { device_ = std::move(device); }

  // ExecutionError, which says why, if it is not there.
  Tensor output(std::size_t index) const;
  std::vector<Tensor> outputs() const;
  Tensor value(ValueId v) const;
  // Throws if the value has not been computed yet, or if an input or a state value has not been set.
  void check_computed(ValueId v) const;
  // Why the bytes of a value that has been computed are not there; empty if they are. `ask_overwriter`: look for a later node
  // of the step in its bytes too, which is O(nodes).
  std::string why_gone(ValueId v, bool ask_overwriter = true) const;
  // The step under way, or the last step, is of this executor, and no other executor has run in its memory since.
  bool holds_step() const;
  ValueId find_value(const std::string& name) const;  // UsageError if the graph has none of this name

  void begin_step();                    // lets go of kept outputs
  void keep_those_in(BufferId buffer);  // the buffer is about to be written
  void keep_those_in(const StateValue& value);

 private:
  void check_output(std::size_t index) const;
  void check_maker(ValueId v) const;
  bool made(ValueId own) const;
  bool written_by_caller(ValueId v) const;
  std::string caller_wrote(ValueId v) const;
  [[noreturn]] void gone_to_caller(ValueId v) const;
  [[noreturn]] void gone(ValueId v, const std::string& why) const;

  const Plan& plan_;
  const Member& member_;
  const Buffers& buffers_;
  const InputSlots& inputs_;
  const StateSlots& states_;
  const ObservedRun& observed_;
  StepProgress& progress_;
  ByteUses& uses_;
  std::vector<std::string> names_;
  std::string device_;                       // has the outputs; empty: the host
  std::vector<std::optional<Tensor>> kept_;  // by output: a copy, made because its bytes were about to be written
  std::vector<bool> lost_;                   // by output: it was too late for a copy, since the caller had written there
};

}  // namespace tapedeck::replay
