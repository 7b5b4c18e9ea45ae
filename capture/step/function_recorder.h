// Runs the function of a captured step inside a capture: to record it, or to check it against a recording. Results are copies
// if the next call could change them.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck {

class FunctionRecorder {
 public:
  FunctionRecorder(StepFunction fn, std::vector<std::string> input_names, std::vector<std::string> output_names,
                   bool fully_static);

  std::string input_name(std::size_t i) const;   // "in0", "in1", ... where none was given
  std::string output_name(std::size_t i) const;  // "out0", "out1", ... likewise

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const { return fn_(inputs); }  // not inside a capture of its own
  Captured record(const std::vector<Tensor>& inputs, std::vector<Tensor>* outputs) const;
  // Throws CaptureError at the first op that differs from the recording. REQUIRES: the recording has a script.
  std::vector<Tensor> check(const Captured& captured, const std::vector<Tensor>& inputs) const;

 private:
  using End = std::function<void(Capture&, const std::vector<Tensor>& outputs)>;
  std::vector<Tensor> run_captured(const std::vector<Tensor>& inputs, const End& end) const;

  StepFunction fn_;
  std::vector<std::string> input_names_, output_names_;
  bool fully_static_;
};

}  // namespace tapedeck
