// The bytes that a step in parts keeps so that its values can be computed again and so that the step can go back: the state
// before the step, and the results of nodes with effects.
//
// A state value is copied just before the first part that overwrites its bytes. The results of a node with effects are copied
// when the node has run. A step that goes back gets its state back. When it comes to a node with effects once more, the copies
// are written in place of a second run.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/state_slots.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::replay {

class KeptStep {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  KeptStep(const Plan& plan, const Member& member, const InputSlots& inputs, StateSlots& states)
      : plan_(plan), member_(member), inputs_(inputs), states_(states) {}

  void keep(bool on);                      // for the steps that begin from now on
  bool on() const { return on_; }          // steps in parts are kept
  bool active() const { return active_; }  // the step under way, or the one that has come to its end, is kept
  std::int64_t bytes() const;              // of all copies

  // ---- around a step ----
  void begin_step(bool in_parts);
  void forget();  // lets go of all copies
  // The part runs the nodes between the cut of `progress` and `until`.
  void before_part(const StepProgress& progress, const StepProgress::Cut& until);
  void after_part(const StepProgress& progress);

  // Gives the state its bytes before the step, for a step that ends or goes back. Returns false, and changes nothing, if the
  // step is not kept or if why_no_way_back() has a reason.
  bool give_back();
  std::string why_no_way_back() const;         // a reason as a sentence; empty if there is none
  void come_again() { coming_again_ = true; }  // the next step is this one once more: results of effects stay

  // ---- for those who compute values again ----
  const Tensor* state(std::int32_t slot) const;  // before the step; null if no copy was needed
  bool has_effect(NodeId n) const { return !effect_.empty() && effect_[n] != kNone; }
  const Tensor* result(ValueId v) const;  // of a node with effects; null if it was not kept

  // ---- from the thread that runs the node ----
  bool watches_effects() const { return active_ && !results_.empty(); }
  bool serve(NodeId n, const KernelCall& call) const;  // writes the results that were kept; false if there are none
  void note_results(NodeId n, const KernelCall& call);

 private:
  void prepare();

  const Plan& plan_;
  const Member& member_;
  const InputSlots& inputs_;
  StateSlots& states_;
  bool on_ = false, active_ = false, coming_again_ = false;

  struct StateWriter {
    NodeId node = kNone;
    std::int32_t slot = kNone;
  };
  std::vector<StateWriter> writers_;          // nodes that write bytes of state; empty until prepare()
  std::vector<std::optional<Tensor>> state_;  // by slot: as it was before the step
  std::vector<std::int32_t> effect_;          // by node: its place in results_; kNone for a node without effects
  std::vector<std::vector<Tensor>> results_;  // by node with effects; empty until it has run
};

}  // namespace tapedeck::replay
