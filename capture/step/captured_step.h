// A captured step: a callable that records the function it was given, and replays the recording.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/size_buckets.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <functional>
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
  ExecutorOptions executor = {};
  std::vector<std::string> input_names = {};  // default in0, in1, ...
  CaptureMode mode = CaptureMode::replay;
  int check_every = 0;        // N: of the calls that could replay, every N-th is checked as in CaptureMode::checked; 0: none
  bool fully_static = false;  // no unplanned regions: an op with a result whose size is known only in a run is an error
  DimOptions dims = {};       // named dimensions: sizes within their ranges are one step (size_buckets.h)
};

// One call at a time: a second one, from another thread or from inside the function, is a CaptureError.
class CapturedStep {
 public:
  CapturedStep(StepFunction fn, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(CapturedStep&&) noexcept;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);
  CaptureMode mode() const;
  void set_mode(CaptureMode mode);
  void forget();  // drops every recording: the next call records. After a replay that failed half way, restore the state first
  std::string explain() const;       // for every recording: inputs, state, constants, ..., and why it was recorded (again)
  std::string explain_json() const;  // the same; schema tapedeck.explain/1
  const Plan* plan() const;  // of the program that ran last; null while it is not replayed yet. Valid until the next call
  int recordings() const;    // how often the function itself has run to be recorded
  int replays() const;
  int checks() const;  // checked calls that agreed with the capture

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline CapturedStep capture(StepFunction fn, CapturedStepOptions options = {}) {
  return CapturedStep(std::move(fn), std::move(options));
}

}  // namespace TAPEDECK_API
