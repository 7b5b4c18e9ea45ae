// Records a model of the registry into a file, and reads back with which options that was done.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

// The graph of one training step, with the values after that step. Throws UsageError for an unknown model, which names a near
// one, and for options that the model does not take. `captured` gets the recording, if it is not null.
TapeFile record_tape(const std::string& model, const ModelOptions& options, Captured* captured = nullptr);

// The options that record_tape() wrote into the metadata of a file; those that the metadata lacks are the model's own.
ModelOptions recorded_options(const std::map<std::string, std::string>& metadata);

}  // namespace TAPEDECK_API
