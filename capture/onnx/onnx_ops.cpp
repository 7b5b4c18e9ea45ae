#include <tapedeck/capture/onnx/onnx_ops.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string>

namespace tapedeck::onnx {

namespace {

std::vector<OnnxOp> sorted(std::initializer_list<std::vector<OnnxOp> (*)()> families) {
  std::vector<OnnxOp> all;
  for (auto* family : families) {
    std::vector<OnnxOp> part = family();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end(), [](const OnnxOp& a, const OnnxOp& b) { return std::strcmp(a.name, b.name) < 0; });
  return all;
}

}  // namespace

const std::vector<OnnxOp>& all_onnx_ops(std::string_view domain) {
  static const std::vector<OnnxOp> ops = sorted({arithmetic_ops, activation_ops, shape_ops, index_ops, reduce_ops, window_ops,
                                                 norm_ops, recurrent_ops, resize_ops, create_ops, attention_ops, sample_ops});
  static const std::vector<OnnxOp> of_ml = sorted({ml_ops}), none;
  return domain.empty() ? ops : domain == kMlDomain ? of_ml : none;
}

const OnnxOp* find_op(std::string_view domain, std::string_view name) {
  const std::vector<OnnxOp>& all = all_onnx_ops(domain);
  const auto it =
      std::lower_bound(all.begin(), all.end(), name, [](const OnnxOp& op, std::string_view n) { return op.name < n; });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

const char* why_unsupported(std::string_view domain, std::string_view name) {
  if (domain == kMlDomain) return why_unsupported_ml(name);
  static constexpr const char* kQuantised = "quantised models are not supported: export the model in floating point";
  static constexpr const char* kText = "texts are not supported";
  static constexpr const char* kSequence = "sequences and optional values are not supported";
  static constexpr const char* kDetection = "its result has a size that only a run knows";
  static constexpr const char* kSignal = "transforms of signals are not supported";
  static constexpr const char* kRare = "no model that was tried uses it";
  static const std::map<std::string_view, const char*> reasons = {
      {"QuantizeLinear", kQuantised},
      {"DequantizeLinear", kQuantised},
      {"DynamicQuantizeLinear", kQuantised},
      {"QLinearConv", kQuantised},
      {"QLinearMatMul", kQuantised},
      {"ConvInteger", kQuantised},
      {"MatMulInteger", kQuantised},
      {"StringConcat", kText},
      {"StringNormalizer", kText},
      {"StringSplit", kText},
      {"RegexFullMatch", kText},
      {"TfIdfVectorizer", kText},
      {"ImageDecoder", "images in files are not supported"},
      {"SequenceAt", kSequence},
      {"SequenceConstruct", kSequence},
      {"SequenceEmpty", kSequence},
      {"SequenceErase", kSequence},
      {"SequenceInsert", kSequence},
      {"SequenceLength", kSequence},
      {"SequenceMap", kSequence},
      {"SplitToSequence", kSequence},
      {"ConcatFromSequence", kSequence},
      {"Optional", kSequence},
      {"OptionalGetElement", kSequence},
      {"OptionalHasElement", kSequence},
      {"NonMaxSuppression", kDetection},
      {"Unique", kDetection},
      {"DFT", kSignal},
      {"STFT", kSignal},
      {"MelWeightMatrix", kSignal},
      {"BlackmanWindow", kSignal},
      {"HammingWindow", kSignal},
      {"HannWindow", kSignal},
      {"Adagrad", "optimizers in the file are not supported: --train adds one"},
      {"Adam", "optimizers in the file are not supported: --train adds one"},
      {"Momentum", "optimizers in the file are not supported: --train adds one"},
      {"Gradient", "gradients in the file are not supported: --train makes them"},
      {"AffineGrid", kRare},
      {"BitCast", kRare},
      {"CausalConvWithState", kRare},
      {"Col2Im", kRare},
      {"CumProd", kRare},
      {"DeformConv", kRare},
      {"Det", kRare},
      {"LinearAttention", kRare},
      {"MaxRoiPool", kRare},
      {"MaxUnpool", kRare},
      {"RoiAlign", kRare},
      {"SwiGLU", kRare},
      {"TensorScatter", kRare},
  };
  const auto it = reasons.find(name);
  return it == reasons.end() ? nullptr : it->second;
}

}  // namespace tapedeck::onnx
