// The values that a replay in the viewer starts from: those of the file, and stand-ins for those that it lacks, as
// `tapedeck replay` takes them.
#pragma once

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tensor.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

struct ReplayValues {
  std::vector<Tensor> inputs, state;  // by index
  int stand_ins = 0;                  // how many of them the file lacks
};

// REQUIRES: `graph` has the inputs and the state of the file. A name that ends in .graph means text, which holds no values.
// Throws FileError, ParseError; UsageError if the file was written anew since and is another step by now.
ReplayValues replay_values(const std::string& path, const Graph& graph);

// Inputs are copied. State is bound, so the steps write the tensors of `values`, which must outlive the executor's runs.
void set_values(Executor* executor, const ReplayValues& values);

}  // namespace tapedeck::viewer
