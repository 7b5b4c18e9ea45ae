// The options of `import onnx`, and the command itself: a model becomes a graph, or a step of training.
#pragma once

#include <tapedeck/capture/tool/line/option.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

struct OnnxRequest {
  std::string file, output;
  std::vector<std::string> dims, parameters;
  std::string loss, optimizer = "sgd";
  bool train = false, abstract = false, json = false;
};

std::vector<Option> onnx_options(OnnxRequest& request);
int import_onnx_model(const OnnxRequest& request);
// The option of ONNX that was given; empty: none. Other formats do not take it.
std::string given_onnx_option(const OnnxRequest& request);

}  // namespace tapedeck::tool
