// Imports a model in the ONNX format as a graph of Tapedeck: as it is, or as a step of training.
//
//     const OnnxImport step = import_onnx("resnet.onnx", {.dims = {{"batch", 32}}, .train = true, .loss = "cross_entropy"});
//     save_tape("resnet.tape", step.file);
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct OnnxOptions {
  // The sizes of dimensions that the model leaves open, by their names; "x.0" is dimension 0 of the input x.
  std::map<std::string, std::int64_t> dims = {};
  // Patterns with * of the initializers that are parameters. Empty: those that look like weights; the report lists them.
  std::vector<std::string> parameters = {};
  bool train = false;
  // Of a step of training: "cross_entropy", "mse" or "bce" of the first output of floating numbers and a target, which becomes
  // an input; or the name of an output that is the loss already.
  std::string loss = "";
  std::string optimizer = "sgd";  // or "adamw"
  // Inputs that are constants of the graph, by their names in the model: sizes that the model takes as tensors, for instance.
  std::map<std::string, Tensor> constants = {};
  bool abstract = false;  // the file gets types and no values
};

struct OnnxImport {
  TapeFile file;
  struct Parameter {
    std::string name, initializer;  // in the graph, and in the model
    Type type;
  };
  std::vector<Parameter> parameters;
  std::map<std::string, std::int64_t> ops;  // how many nodes of each op the model has
  std::int64_t opset = 0;
  std::string producer;
  std::vector<std::string> notes;  // what the person should know, in sentences
};

// Whether this build reads and writes ONNX: protobuf was there when it was configured.
bool has_onnx();

// The facts by which a person chooses: the sizes that the model leaves open, as OnnxOptions::dims names them, and its outputs.
// Throws as import_onnx() does.
struct OnnxFacts {
  std::vector<std::string> open_sizes, outputs;
  std::string error = {};  // for callers that deliver the facts later
};
OnnxFacts onnx_facts(const std::string& path);

// Nothing of the model runs: nodes are recorded on types alone, and values that follow from shapes and constants are computed.
// Parameters, and the moments of the optimizer, are state of the graph; their values are in the file, unless it is `abstract`.
// Memory: the weights once. Throws DeviceError without support for ONNX, UsageError for options that do not fit the model;
// FileError for files that cannot be read; ParseError for what is no ONNX model, and for ops, types and sizes that are not
// supported, which names the node.
OnnxImport import_onnx(const std::string& path, const OnnxOptions& options = {});

}  // namespace TAPEDECK_API
