// From a finished tape to a graph: what the code read from outside is sorted into inputs (declared, marked as such like
// learning rates, gradients that were there before), state (mutated inside, or marked as a parameter or moment), and constants.
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

// Takes the tape's nodes: it records no more. Throws CaptureError for what no graph can say, naming op and place.
// `counted`: the nodes of the graph whose count was read while recording.
Captured freeze(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs,
                bool gradients, std::vector<NodeId>* counted);

}  // namespace tapedeck
