// The values that a replay starts from: those of the command line, else those of the file or of the model just recorded, else
// stand-ins made from a seed.
#pragma once

#include <tapedeck/capture/tool/files/input_values.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/record_tape.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/executor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::tool {

// A .tape, or a text graph (*.graph) as a tape that holds nothing else.
TapeFile load_any(const std::string& path, Check check);

struct StartOptions {
  std::vector<std::string> inputs;  // NAME=VALUE, as given_input() reads it
  std::string weights;              // a safetensors file with state by name
  std::uint64_t seed = 42;          // of stand-ins
};

struct Start {
  std::vector<Tensor> inputs, state;                                 // by index; inputs are those of the first step
  std::map<std::int32_t, std::unique_ptr<InputSequence>> sequences;  // by input: the values of the further steps
};

// Throws UsageError for an input that does not exist or cannot be read as one, FileError for weights that do not fit.
Start starting_values(const TapeFile& file, const StartOptions& options);

// Bound state is the tensor in `start` itself: it is held once, and the steps write it.
enum class StateUse : std::uint8_t { copied, bound };
void set_start(Executor* executor, const Start& start, StateUse use = StateUse::copied);

}  // namespace tapedeck::tool
