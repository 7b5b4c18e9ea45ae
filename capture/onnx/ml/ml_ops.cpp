// The table of the domain ai.onnx.ml, and its ops that are not in it.
#include <tapedeck/capture/onnx/ml/rows.h>

#include <iterator>
#include <map>

namespace tapedeck::onnx {

std::vector<OnnxOp> ml_ops() {
  std::vector<OnnxOp> all = ml_linear_ops();
  for (OnnxOp& op : ml_feature_ops()) all.push_back(op);
  return all;
}

const char* why_unsupported_ml(std::string_view name) {
  static constexpr const char* kTrees = "a tree asks one question after another, which is no arithmetic with tensors";
  static constexpr const char* kMaps = "texts and maps are not supported";
  static const std::map<std::string_view, const char*> reasons = {
      {"TreeEnsemble", kTrees},
      {"TreeEnsembleClassifier", kTrees},
      {"TreeEnsembleRegressor", kTrees},
      {"CastMap", kMaps},
      {"CategoryMapper", kMaps},
      {"DictVectorizer", kMaps},
      {"SVMClassifier", "votes of pairs of classes are not supported"},
  };
  const auto it = reasons.find(name);
  return it == reasons.end() ? nullptr : it->second;
}

}  // namespace tapedeck::onnx
