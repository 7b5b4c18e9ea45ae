// Saves all that a training needs to go on, and loads it again: a program that is stopped between two steps and resumed
// computes the same bits as one that was not stopped.
//
//     save_state("run.state", {.net = &net, .optimizer = &optimizer, .scaler = &scaler, .step = &step});
//     ...
//     load_state("run.state", {.net = &net, .optimizer = &optimizer, .scaler = &scaler, .step = &step});
//
// The file is a safetensors file (capture/file/README.md lists its names).
#pragma once

#include <tapedeck/capture/file/load_report.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/nn/grad_scaler.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/nn/optimizer.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

// The parts of a training. A null part is neither saved nor loaded; a file may hold more parts than are asked for.
struct StateParts {
  Module* net = nullptr;           // parameters and buffers, by name
  Optimizer* optimizer = nullptr;  // moments, step counter, and the learning rates of all groups
  GradScaler* scaler = nullptr;    // the scale, and the number of finite steps
  // The author's number of the step. Schedules are functions of it, so it is all the state that they have.
  std::int64_t* step = nullptr;
  bool rng = true;                             // the random position of the calling thread (random_position.h)
  std::map<std::string, Tensor> tensors = {};  // other state of the author, such as averages of weights; loaded in place
};

// Writes beside `path`, syncs, then renames. Not in the file: gradients, whether modules train, which parameters are frozen,
// the options of the optimizer, the random positions of other threads. Call it between two steps, after zero_grad(). Throws
// FileError; UsageError if two tensors of a part have one name, or a tensor has no data; CaptureError inside a capture.
void save_state(const std::string& path, const StateParts& parts, Site site = {__builtin_FILE(), __builtin_LINE()});

// Writes the values of the file into the parts: tensors in place, so captured steps see them. Everything is read and checked
// before the first write. Throws FileError that names the file if it is not a saved state, or is newer than this program, or
// does not fit and the load is strict; CaptureError inside a capture. If it throws, nothing has changed.
LoadReport load_state(const std::string& path, const StateParts& parts, LoadOptions options = {},
                      Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
