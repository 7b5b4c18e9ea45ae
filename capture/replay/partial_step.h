// A step in parts: forward, backward and update apart, some nodes at a time, to any node and on from there.
//
// Every part goes from the cut that the step has reached (step_progress.h) to a later cut. A segment begins only when the
// segments that it waits for are complete. So for any parts the nodes run in an order that the segments allow, and what the
// plan says of bytes holds.
#pragma once

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/kept_step.h>
#include <tapedeck/capture/replay/memory/byte_uses.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/observed_run.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/capture/replay/segments/run_segments.h>
#include <tapedeck/capture/replay/state_slots.h>
#include <tapedeck/capture/replay/step_runner.h>
#include <tapedeck/capture/replay/time_travel.h>

#include <cstdint>
#include <vector>

namespace tapedeck::replay {

class PartialStep {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  PartialStep(const Plan& plan, Member& member, const InputSlots& inputs, StateSlots& states, KeptStep& kept,
              const Program& program, SegmentWalk& walk, ObservedRun& observed, StepProgress& progress, ByteUses& uses,
              StepRunner& runner);

  // Each of these runs one part. Executor describes them and their errors.
  void run_phase(Phase phase, const RunOptions& options);
  std::int32_t run_nodes(std::int64_t n);  // the next n, one after the other; returns how many are left
  std::int32_t run_through(NodeId last);   // the next nodes, up to and including this one; returns how many are left
  void resume(const RunOptions& options);
  Stop run_until(const Breakpoints& breakpoints);
  std::int32_t back(std::int32_t n);  // `n` nodes fewer have run; returns how many are left

  // Throws ExecutionError if a node of the step under way has read the input: it may not change any more.
  void check_unread(std::int32_t input) const;

 private:
  using Cut = StepProgress::Cut;

  void prepare();
  bool has_nodes(Phase phase) const;
  const Cut& phase_cut(Phase phase);
  Cut find_phase_cut(Phase phase) const;
  std::int32_t run_in_order(std::int64_t n, NodeId last, Pause* pause = nullptr);
  void run_part(bool one_by_one, const RunOptions* options, Pause* pause = nullptr);
  std::int32_t stop_behind(NodeId last);
  Stop next_stop(const Breakpoints& breakpoints) const;
  void check_inputs() const;
  void set_ranges();
  std::int32_t instruction_at(std::int32_t segment, std::int32_t nodes) const;
  void heed_callers_writes();

  const Plan& plan_;
  Member& member_;
  const InputSlots& inputs_;
  StateSlots& states_;
  KeptStep& kept_;
  const Program& program_;
  SegmentWalk& walk_;
  ObservedRun& observed_;
  StepProgress& progress_;
  ByteUses& uses_;
  StepRunner& runner_;

  std::vector<Phase> phases_;                     // by node: in which it runs; empty until prepare()
  Cut cuts_[3];                                   // by phase: nodes to run by its end; empty until asked for
  Cut until_;                                     // the end of the part that runs now
  std::int32_t last_phase_ = kNone;               // the last that was run apart in this step
  std::vector<IndexRange> nodes_, instructions_;  // by segment: the part that runs now
};

}  // namespace tapedeck::replay
