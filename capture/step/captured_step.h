// A captured step: a callable that records the function it was given, and replays the recording.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/size_buckets.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A step that records its first two calls and replays the others. It has a program for each list of input types, and for
// everything else that eager code would have seen: whether gradients are wanted, autocast, which modules train, which tensors
// need and have gradients, the random state of the thread.
//     auto step = capture([&](const std::vector<Tensor>& in) { ...; return std::vector<Tensor>{loss}; });
//     Tensor loss = step({x, y})[0];
// Results belong to the caller. Inside an open capture, a checkpoint region or abstract execution a call just runs the
// function. capture/README.md lists the steps that are refused.
//
// A replay does not run the function, so it does not see
// - what the function would decide on the host: a C++ number that changes after the second call, a branch on one, an
//   Autocast(dtype, on) inside whose `on` changes (autocast around the call is seen);
// - another tensor in the place of one that the step reads as a constant, as long as the old tensor has as many handles as
//   before. When its last handle, or any handle that an earlier call counted, is let go, the function runs once more.
// A checked call finds both: see check_every. Tensors whose bytes mutable_data() has handed out are read anew by every replay,
// so writes through such a pointer are seen.
//
// Eager draws are numbered within a random step, and next_step() begins the next one (optimizers call it). A step that draws
// without it draws other numbers in every call, so no recording serves twice. After 16 such recordings in a row the calls run
// eagerly, with a warning on stderr.
using StepFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

enum class CaptureMode : std::uint8_t {
  replay,
  checked,  // the function runs eagerly every time, and its ops are compared with the capture as they come: CaptureError at the
            // first difference
};

struct CapturedStepOptions {
  PlanOptions plan = {};
  // If the tensors of a call are on a device, its replays run there and give results there, in no pool, whatever this says.
  ExecutorOptions executor = {};
  // Each list has one name for each input or result, or is empty: then the names are in0, in1, ... or out0, out1, ... capture()
  // throws UsageError for a name that stands twice, and a call throws it for another number of inputs or results.
  std::vector<std::string> input_names = {}, output_names = {};
  CaptureMode mode = CaptureMode::replay;
  int check_every = 0;        // N: of the calls that could replay, every N-th is checked as in CaptureMode::checked; 0: none
  bool fully_static = false;  // no unplanned regions: an op with a result whose size is known only in a run is an error
  DimOptions dims = {};       // named dimensions: sizes within their ranges are one step (size_buckets.h)
  // Calls that the step would refuse with a CaptureError run eagerly instead, and are counted (eager_calls()). A call runs the
  // function once at most, so that no update and no draw happens twice:
  // - A run that was recorded and turns out to be no recording (it did something else than the last one, the host read a
  // tensor,
  //   no graph can express it) has computed what eager code computes, and its results are handed out.
  // - After that the function runs eagerly, outside a capture, until forget(): in all calls if two equal calls did different
  //   things; in calls of this kind (see above) otherwise. In CaptureMode::checked, kinds that have a program are still
  //   checked.
  // - Undefined inputs, and sizes that `dims` does not allow, run eagerly call by call.
  // A CaptureError still comes out, and later calls of this kind run eagerly, where the run has no eager results to hand out:
  // an op that no capture allows has thrown inside the function (mutable_data(), a capture inside, a new seed, ...); backward
  // inside has reached an input whose history began before the step; or a result has gradients to give and no graph can express
  // the run. Errors of the function, kernel faults, budgets that no plan meets and calls at the same time come out as ever.
  // Tensors that the function keeps to itself have no gradient history from a recorded call.
  bool eager_fallback = false;
};

// One call at a time: a second one, from another thread or from inside the function, is a CaptureError.
class CapturedStep {
 public:
  CapturedStep(StepFunction fn, CapturedStepOptions options = {});
  // Where the environment variable TAPEDECK_SAVE_STEP names a .tape file, the program that ran last is saved there, so that
  // `tapedeck run --view` can show it. Never throws: a step that cannot be saved is a warning on stderr.
  ~CapturedStep();
  CapturedStep(CapturedStep&&) noexcept;
  CapturedStep& operator=(CapturedStep&&) noexcept;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, Site site = {__builtin_FILE(), __builtin_LINE()});
  CaptureMode mode() const;
  void set_mode(CaptureMode mode);
  void forget();  // drops every recording: the next call records. After a replay that failed half way, restore the state first
  std::string explain() const;       // for every recording: inputs, state, constants, ..., and why it was recorded (again)
  std::string explain_json() const;  // the same; schema tapedeck.explain/1

  // ---- the program that ran last ----
  // A step has a program for each kind of call (see above). These functions answer for the one that the last call belonged to.
  // Pointers are valid until the next call.
  const Captured* captured() const;  // its graph and what the recording found; null before the first call and after forget()
  const Plan* plan() const;          // null until two recordings have agreed
  // Writes the program to a .tape file: the graph, the tensors of its inputs and its state with the values that they have now,
  // and the plan if there is one. `tapedeck replay`, the viewer and load_executor() read it. UsageError if nothing was recorded
  // yet, or if the program calls a function of this process (on_host); FileError.
  void save(const std::string& path, const std::map<std::string, std::string>& metadata = {}) const;
  std::vector<std::string> state_names() const;
  Tensor state(const std::string& name) const;  // the author's own tensor, not a copy; UsageError if there is none
  // After a replay; ExecutionError before. observed_peak_bytes(): the most bytes that the replays of the step held at once, all
  // its programs together. value(): a copy of any value of the plan's graph, while its bytes are there (Executor::value).
  std::int64_t observed_peak_bytes() const;
  Tensor value(const std::string& name) const;

  // Shows `fn` the results of every node whose op, module path or result has a name that the pattern matches, in the replays of
  // every program of the step (Executor::monitor). Recorded and checked calls run eagerly and show nothing.
  std::int32_t monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options = {});
  void remove_monitor(std::int32_t id);  // UsageError if there is no such monitor

  int recordings() const;  // how often the function itself has run to be recorded
  int replays() const;
  int checks() const;  // checked calls that agreed with the capture
  // Calls that ran eagerly in the place of a recording or replay: by eager_fallback, or because every call draws other numbers
  // (see above). And why the last of them did; empty if there was none.
  int eager_calls() const;
  const std::string& last_eager_reason() const;

 private:
  const Captured& recorded(
      const char* what) const;  // captured(); UsageError, which names the function `what`, if there is none

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline CapturedStep capture(StepFunction fn, CapturedStepOptions options = {}) {
  return CapturedStep(std::move(fn), std::move(options));
}

}  // namespace TAPEDECK_API
