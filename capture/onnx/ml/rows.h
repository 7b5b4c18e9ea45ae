// Ops of ai.onnx.ml take rows of features, and have their numbers as attributes.
#pragma once

#include <tapedeck/capture/onnx/onnx_ops.h>

#include <vector>

namespace tapedeck::onnx {

inline constexpr const char* kNoTexts = "texts are not supported: train the model with integers instead";

// The first operand as f32 [n, features]; a list of features is one row.
Tensor rows_of(const NodeCall& n);
// Numbers of attributes as a tensor of f32. REQUIRES as many as the shape has.
Tensor constant_of(const std::vector<double>& values, const Shape& shape);
Tensor constant_of(const std::vector<double>& values);  // [n]

std::vector<OnnxOp> ml_linear_ops();
std::vector<OnnxOp> ml_feature_ops();

}  // namespace tapedeck::onnx
