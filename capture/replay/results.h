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

  // ExecutionError, which says why, if it is not there.
  Tensor output(std::size_t index) const;
  std::vector<Tensor> outputs() const;
  Tensor value(ValueId v) const;
  ValueId find_value(const std::string& name) const;  // UsageError if the graph has none of this name

  void begin_step();                    // lets go of kept outputs
  void keep_those_in(BufferId buffer);  // the buffer is about to be written
  void keep_those_in(const StateValue& value);

 private:
  void check_computed(ValueId v) const;
  bool written_by_caller(ValueId v) const;
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
  std::vector<std::optional<Tensor>> kept_;  // by output: a copy, made because its bytes were about to be written
  std::vector<bool> lost_;                   // by output: it was too late for a copy, since the caller had written there
};

}  // namespace tapedeck::replay
