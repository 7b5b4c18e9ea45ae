#include <tapedeck/capture/onnx/training_step.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

void require_floating(const std::string& loss, const Tensor& output) {
  if (!is_floating(output.dtype()))
    throw UsageError(
        fmt::format("the loss {} needs an output of floating numbers, and it is {}", loss, to_string(output.type())));
}

// Classes are dimension 1 of [n,c] and of images [n,c,h,w], and the last one of sequences [n,t,c].
bool classes_last(const Tensor& output) { return output.rank() == 3; }

}  // namespace

Type target_type(const std::string& loss, const Tensor& output) {
  require_floating(loss, output);
  if (loss == "mse" || loss == "bce") return output.type();
  if (loss != "cross_entropy") {
    const std::string near = did_you_mean(loss, {"cross_entropy", "mse", "bce"});
    throw UsageError(fmt::format("unknown loss '{}'{} A loss is cross_entropy, mse, bce or the name of an output", loss,
                                 near.empty() ? "." : near));
  }
  if (output.rank() < 2)
    throw UsageError(fmt::format("cross_entropy needs an output [n,classes], and it is {}", to_string(output.type())));
  const int classes = classes_last(output) ? output.rank() - 1 : 1;
  Type labels{DType::i64, {}};
  for (int i = 0; i < output.rank(); ++i)
    if (i != classes) labels.shape.sizes[labels.shape.rank++] = output.size(i);
  return labels;
}

Tensor loss_of(const std::string& loss, const Tensor& output, const Tensor& target, const std::string& last_op) {
  if (loss == "mse") return mse_loss(output, target);
  if (loss == "bce")
    return last_op == "Sigmoid" ? binary_cross_entropy(output, target) : binary_cross_entropy_with_logits(output, target);
  Tensor logits = output, labels = target;
  if (classes_last(output)) {
    logits = reshape(output, {-1, output.size(-1)});
    labels = reshape(target, {-1});
  }
  if (last_op == "Softmax") return nll_loss(log(logits), labels);
  if (last_op == "LogSoftmax") return nll_loss(logits, labels);
  return cross_entropy(logits, labels);
}

Tensor scalar_loss(const Tensor& output) {
  require_floating("of the model", output);
  if (output.rank() == 0) return output;
  return output.numel() == 1 ? reshape(output, Shape{}) : mean(output);
}

namespace {

// Ops of ai.onnx.ml whose results are probabilities, as those of a softmax are.
bool gives_probabilities(const Node& node) {
  const auto is_text = [&](const char* name, const std::string& text) {
    const auto it = node.attributes.find(name);
    return it != node.attributes.end() && it->second.text == text;
  };
  if (node.op == "Normalizer") return is_text("norm", "L1");
  return node.op == "LinearClassifier" && (is_text("post_transform", "SOFTMAX") || is_text("post_transform", "LOGISTIC"));
}

const Node* maker_of(const Model& model, const std::string& value) {
  for (const Node& node : model.graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end()) return &node;
  return nullptr;
}

// scikit-learn's networks for two classes end in [1 - p, p], where p is the result of a sigmoid.
bool joins_two_probabilities(const Model& model, const Node& node) {
  if (node.op != "Concat" || node.inputs.size() != 2) return false;
  const Node *first = maker_of(model, node.inputs[0]), *second = maker_of(model, node.inputs[1]);
  return first != nullptr && second != nullptr && first->op == "Sub" && second->op == "Sigmoid" && first->inputs.size() == 2 &&
         first->inputs[1] == node.inputs[1];
}

}  // namespace

std::string op_of_scores(const Model& model, const std::string& output) {
  std::string name = output;
  for (auto node = model.graph.nodes.rbegin(); node != model.graph.nodes.rend(); ++node) {
    if (std::find(node->outputs.begin(), node->outputs.end(), name) == node->outputs.end()) continue;
    const bool keeps = node->op == "Identity" || node->op == "Cast" || node->op == "ZipMap";
    if (!keeps || node->inputs.empty())
      return gives_probabilities(*node) || joins_two_probabilities(model, *node) ? "Softmax" : node->op;
    name = node->inputs[0];
  }
  return {};
}

std::vector<std::string> missing_for_training(const Model& model) {
  std::vector<std::string> notes;
  const auto count = [&](auto holds) { return std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(), holds); };
  const auto is = [](const char* op) { return [op](const Node& n) { return n.op == op; }; };
  const auto folded = count([](const Node& n) {
    return n.op == "Conv" && n.inputs.size() > 2 && (n.inputs[2].ends_with("_bias") || n.inputs[2].starts_with("onnx::"));
  });
  if (count(is("BatchNormalization")) == 0 && folded > 0)
    notes.push_back(fmt::format(
        "The model has no batch normalization, and the biases of {} of its convolutions look as if the exporter had folded it "
        "into "
        "them: training will not normalize. PyTorch keeps it with torch.onnx.export(model.train(), ..., dynamo=False, "
        "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False).",
        folded));
  if (count(is("Dropout")) == 0)
    notes.push_back(
        "The model has no dropout. Exporters leave it out in evaluation mode; PyTorch keeps it if the model is exported after "
        "model.train().");
  return notes;
}

}  // namespace tapedeck::onnx
