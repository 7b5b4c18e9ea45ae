// Looks at any value that the step under way, or the last step, has computed: it is copied if its bytes are there, and
// otherwise computed again in memory of its own. Neither the arena nor the state is written.
//
//     %a = exp(%x)   %b = neg(%a)   %c = matmul(%b, %w)        %a and %b are gone, %w has been overwritten by an update
//     inspect %b:    exp and neg run again from %x             inspect %c: matmul too, from the copy of %w before the step
//
// The nodes that run again are a part of the nodes that have run, each at most once, in the order of the plan. A value of
// theirs is let go behind its last reader among them. So this takes no longer than the step, and about as many bytes.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/kept_step.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/byte_uses.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/results.h>
#include <tapedeck/capture/replay/state_slots.h>
#include <tapedeck/capture/replay/time_travel.h>
#include <tapedeck/engine/eager/tensor.h>

#include <optional>
#include <vector>

namespace tapedeck::replay {

class Inspector {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  Inspector(const Plan& plan, const Buffers& buffers, const InputSlots& inputs, const StateSlots& states, const KeptStep& kept,
            StepProgress& progress, ByteUses& uses, const Results& results);

  // Throws ExecutionError for a value that has not been computed yet, and for one that cannot be computed again.
  Inspected inspect(ValueId v) const;

 private:
  struct Again {                        // a computation
    std::vector<NodeId> nodes;          // ascending
    std::vector<std::int32_t> readers;  // by value: how many of the nodes read it; the value that is looked at counts as read
  };

  Again nodes_for(ValueId v) const;
  Inspected run(const Again& again, ValueId v) const;
  bool is_leaf(ValueId v, const std::vector<bool>& intact) const;
  Tensor leaf(ValueId v) const;
  Tensor state_before_step(ValueId v) const;
  [[noreturn]] void cannot(ValueId needed, const std::string& why) const;

  const Plan& plan_;
  const Buffers& buffers_;
  const InputSlots& inputs_;
  const StateSlots& states_;
  const KeptStep& kept_;
  StepProgress& progress_;
  ByteUses& uses_;
  const Results& results_;
};

}  // namespace tapedeck::replay
