// Tensors whose bytes are in files beside the model.
#pragma once

#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/eager/tensor.h>

#include <string>

namespace tapedeck::onnx {

// Reads the bytes of a tensor with external data. The file must lie in the folder of the model or below it: a location that is
// absolute, or that leads out of the folder by ".." or by a link, is a ParseError. FileError if the file cannot be read or is
// too short.
Tensor read_external(const TensorData& data, const Type& type, const std::string& model_path);

}  // namespace tapedeck::onnx
