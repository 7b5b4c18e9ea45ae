// Runs the function of a captured step inside a capture: to record it, or to check it against a recording. Results are copies
// if the next call could change them.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

// What to do about a run of the function that no replay may repeat: throw a CaptureError, or hand out the results of the run
// with the reason.
enum class Refused { thrown, noted };

// One run of the function inside a capture.
struct CapturedRun {
  std::vector<Tensor> outputs;
  std::optional<Captured> captured;  // what was recorded; none after a check that agreed, or if no graph can be made of the run
  std::string refusal;               // why no replay may repeat the run; empty: none, always so with Refused::thrown
};

class FunctionRecorder {
 public:
  FunctionRecorder(StepFunction fn, std::vector<std::string> input_names, std::vector<std::string> output_names,
                   bool fully_static, Refused refused);

  std::string input_name(std::size_t i) const;   // "in0", "in1", ... where none was given
  std::string output_name(std::size_t i) const;  // "out0", "out1", ... likewise

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const { return fn_(inputs); }  // not inside a capture of its own
  // Both run the function once. What it throws comes out, a CaptureError of an op that no capture allows too. With
  // Refused::noted a CaptureError comes out as well if results still have gradients to give and no graph can be made of the
  // run, or if backward inside has reached an input whose history began before the step.
  // `site` is the place of the call, for errors that belong to no op inside.
  CapturedRun record(const std::vector<Tensor>& inputs, Site site) const;
  // The refusal is the first op that differs from the recording. REQUIRES: the recording has a script.
  CapturedRun check(const Captured& recording, const std::vector<Tensor>& inputs, Site site) const;

 private:
  using End = std::function<void(Capture&, CapturedRun&)>;
  CapturedRun run_captured(const std::vector<Tensor>& inputs, Site site, const End& end) const;
  void require_named(const std::vector<Tensor>& outputs,
                     Site site) const;  // UsageError if output_names has another number of names
  void finish(Capture& capture, CapturedRun* run, Site site, const End& end) const;

  StepFunction fn_;
  std::vector<std::string> input_names_, output_names_;
  bool fully_static_;
  Refused refused_;
};

}  // namespace tapedeck
