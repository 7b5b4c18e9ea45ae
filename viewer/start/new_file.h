// New files that a person asks for on the start page: a recorded step of a model, or an imported graph. This file knows no Qt.
#pragma once

#include <tapedeck/capture/import/import_formats.h>
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/capture/record/model_registry.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace tapedeck::viewer {

struct NewFile {
  std::string path;   // that was written; empty: none
  std::string note;   // what a person should know of it: why only types were recorded
  std::string error;  // why nothing was written; empty: nothing went wrong
};

// Records a training step of a model and writes it to `path`. Where the plan that keeps everything needs more memory than
// `available` bytes (-1: not known), types alone are recorded, and the note says so. Writes nothing once `cancelled`. Throws
// UsageError for options that the model does not take, FileError.
NewFile record_step(const std::string& model, const ModelOptions& options, const std::string& path, std::int64_t available,
                    const std::atomic<bool>& cancelled);

// Reads a file of another program, compressed or not, and writes its graph to `path`. Throws ParseError, FileError.
NewFile import_step(const ImportFormat& format, const std::string& from, const std::string& path,
                    const std::atomic<bool>& cancelled);

// Imports a model in the ONNX format and writes it to `path`. Where the plan that keeps everything needs more memory than
// `available` bytes (-1: not known), types alone are written, and the note says so. Throws what import_onnx() throws,
// FileError.
NewFile import_model(const std::string& from, const OnnxOptions& options, const std::string& path, std::int64_t available,
                     const std::atomic<bool>& cancelled);

// The line of the tool that does the same as record_step(): "tapedeck record cnn --batch 64 -o cnn.tape".
std::string record_line(const std::string& model, const ModelOptions& options, const std::string& path);

// The format of a file by its name; the first one if the name does not tell.
const ImportFormat& format_of(const std::string& path);

}  // namespace tapedeck::viewer
