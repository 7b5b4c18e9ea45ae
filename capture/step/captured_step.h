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
// function. A replay does not see changes on the host, for example a C++ number that changes after the second call; a checked
// call finds them. capture/README.md lists the steps that are refused.
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
  int checks() const;  // calls in checked mode that agreed with the capture

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline CapturedStep capture(StepFunction fn, CapturedStepOptions options = {}) {
  return CapturedStep(std::move(fn), std::move(options));
}

}  // namespace TAPEDECK_API
