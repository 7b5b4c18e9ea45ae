// Exports the captured graph of a file as a model in the ONNX format: a forward pass, or a whole step of training.
//
//     export_onnx("lenet.onnx", load_tape("lenet.tape"));
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

struct OnnxExportOptions {
  // The bytes of large tensors go into one file beside the model, NAME.onnx.data. Models of 2 GiB and more need it.
  bool external_data = false;
  // The model may draw random numbers. They have the distributions of those of Tapedeck, and backward uses those of forward,
  // but they are other numbers in each run. Without this, ops that draw have no counterpart.
  bool random = false;
};

struct OnnxExport {
  std::int64_t nodes = 0;  // of the model; one op of Tapedeck may take several
  std::int64_t bytes = 0;  // of all files written
};

// Inputs and outputs of the graph are those of the model; state and constants are initializers, with their values. State that
// the graph updates has its new value as an additional output, "fc1.weight.next". A node keeps its module path as its name and
// its phase and place in its metadata; what belongs to the graph as a whole is metadata of the model (EXPORT.md).
//
// The model has opset 20 and IR version 10. Ops that ONNX lacks are composed of those that it has, so numbers may differ by
// rounding. Loops and branches become Loop, Scan and If. Memory: the values of the state once more, unless they go into the
// file beside the model. A failure leaves no new
// file behind, and an older model as it was.
//
// Throws UsageError, which names all ops that have no counterpart; or says that the file has no values, or that the model is
// too large for one file; DeviceError if this build has no support for ONNX; FileError if the file cannot be written.
OnnxExport export_onnx(const std::string& path, const TapeFile& file, const OnnxExportOptions& options = {});

}  // namespace TAPEDECK_API
