// From a finished tape to a graph. Tensors that the code read from outside are sorted into three kinds: inputs (declared,
// marked as inputs like learning rates, or gradients from before), state (written inside, or marked as a parameter or moment),
// and constants.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/recorder.h>

#include <string>
#include <vector>

namespace tapedeck {

struct Declared {
  std::string name;
  Tensor tensor;
};

struct FreezeOptions {
  bool gradients = false;   // gradients that the code leaves in grad() of tensors from outside are outputs
  bool live_bytes = false;  // a constant whose bytes mutable_data() has handed out is an input
};

// Takes the nodes of the tape; the tape cannot record after that. Throws CaptureError that names op and place if no graph can
// express the step. `counted`: the nodes of the graph whose count was read while recording.
Captured freeze(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs,
                const FreezeOptions& options, std::vector<NodeId>* counted);

}  // namespace tapedeck
