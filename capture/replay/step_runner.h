// One step from its start to its end, or to the error that ends it. A step in parts (partial_step.h) is started once and walked
// several times.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/device/device_step.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/kept_step.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/observed_run.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/results.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/capture/replay/segments/run_segments.h>
#include <tapedeck/capture/replay/state_slots.h>

namespace tapedeck::replay {

class StepRunner {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  StepRunner(const Plan& plan, Member& member, Buffers& buffers, InputSlots& inputs, StateSlots& states, KeptStep& kept,
             Program& program, SegmentWalk& walk, ObservedRun& observed, StepProgress& progress, Results& results);

  void run_on(DeviceStep* device) { device_ = device; }  // from now on; REQUIRES: it outlives this

  void run(const RunOptions* options);  // a whole step; `options` may be null
  // As run(), but a device may still run the step when this returns; then synchronize() throws its error.
  void launch();
  void synchronize();  // waits for all steps that were launched, and throws their error
  // Ends the step under way, if there is one. If it had written state, a kept step gives that state back; else the state is
  // torn. True if it is torn.
  bool drop();
  // Ends the step under way, or undoes the last step, so that it can begin again from the same state. Throws ExecutionError,
  // and changes nothing, if there is no way back.
  void rewind();
  // Throws ExecutionError if a step of this executor is under way, or a step of another member that has written state.
  void refuse_mid_step(const char* what);

  // ---- for steps in parts ----
  void check_ready(bool inputs) const;  // all state is there, and, if asked, all inputs
  void start(bool inputs, bool in_parts);
  // Walks what SegmentWalk::limit() allows. Throws the error of the run: then the step has ended. True if the run was observed;
  // then ObservedRun::tell_end() is due.
  bool walk(const RunOptions* options, const RunExtent& extent);

 private:
  bool failed() const { return walk_.failed() || observed_.damaged(); }
  [[noreturn]] void fail(bool stopped);
  void run_on_device(const RunOptions* options);
  void finish_on_device(const DeviceOutcome& outcome);
  [[noreturn]] void fail_on_device(const DeviceOutcome& outcome);
  void end_step();

  const Plan& plan_;
  Member& member_;
  Buffers& buffers_;
  InputSlots& inputs_;
  StateSlots& states_;
  KeptStep& kept_;
  Program& program_;
  SegmentWalk& walk_;
  ObservedRun& observed_;
  StepProgress& progress_;
  Results& results_;
  DeviceStep* device_ = nullptr;  // null: the CPU
};

}  // namespace tapedeck::replay
