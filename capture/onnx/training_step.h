// The parts that --train adds to a model: a loss, and the check of what an exporter left out.
#pragma once

#include <tapedeck/capture/onnx/node_call.h>
#include <tapedeck/capture/onnx/onnx_model.h>

#include <string>
#include <vector>

namespace tapedeck::onnx {

// The type of the target of a loss of this output. Throws UsageError for a loss that is not known, or that does not fit.
Type target_type(const std::string& loss, const Tensor& output);
// The op that makes the numbers of an output; nodes that keep the numbers are passed over. "Softmax" for all that make
// probabilities of classes.
std::string op_of_scores(const Model& model, const std::string& output);
// The loss of an output. `last_op` is the op that made the output: after a softmax or a sigmoid the loss takes probabilities.
Tensor loss_of(const std::string& loss, const Tensor& output, const Tensor& target, const std::string& last_op);
// A loss that the model computes itself, as one number.
Tensor scalar_loss(const Tensor& output);

// The parts that training needs and the exporter left out, each with the option of PyTorch that keeps it.
std::vector<std::string> missing_for_training(const Model& model);

}  // namespace tapedeck::onnx
