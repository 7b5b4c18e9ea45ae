// Features before a model, and labels behind it: they are scaled, chosen, filled in and encoded.
#include <tapedeck/capture/onnx/ml/rows.h>

#include <tapedeck/engine/ops/ops.h>

#include <cmath>

namespace tapedeck::onnx {

Tensor rows_of(const NodeCall& n) {
  const Tensor& x = n[0];
  n.require(x.rank() == 1 || x.rank() == 2, "the operand must be [features] or [n,features]");
  const Tensor rows = x.rank() == 2 ? x : reshape(n.arg(0), {1, x.numel()});
  return rows.dtype() == DType::f32 ? rows : cast(n.arg(rows), DType::f32);
}

Tensor constant_of(const std::vector<double>& values, const Shape& shape) {
  const std::vector<float> narrow(values.begin(), values.end());
  return known_tensor({DType::f32, shape}, narrow.data());
}

Tensor constant_of(const std::vector<double>& values) {
  return constant_of(values, Shape{static_cast<std::int64_t>(values.size())});
}

namespace {

Tensor as(const NodeCall& n, const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(n.arg(x), dtype); }

Tensor last_axis(const NodeCall& n, const std::vector<double>& values, const char* name) {
  const std::int64_t features = n[0].rank() == 0 ? 1 : n[0].size(-1), count = static_cast<std::int64_t>(values.size());
  n.require(count == 1 || count == features, std::string("there must be one number for each feature in '") + name + "'");
  return constant_of(values);
}

Tensors scale(NodeCall& n) {
  const Tensor offset = last_axis(n, n.reals("offset", {0}), "offset"), factor = last_axis(n, n.reals("scale", {1}), "scale");
  return {mul(n.arg(sub(n.arg(as(n, n[0], DType::f32)), offset)), factor)};
}

// Rows of zeros stay.
Tensors normalize(NodeCall& n) {
  const std::string kind = n.text("norm", "MAX");
  const Tensor x = as(n, n[0], DType::f32);
  n.require(x.rank() > 0, "the operand must have one dimension or more");
  n.require(kind == "MAX" || kind == "L1" || kind == "L2", "the norm '" + kind + "' is not known");
  const Tensor total = kind == "MAX"  ? max(n.arg(x), {-1}, true)
                       : kind == "L1" ? sum(abs(n.arg(x)), {-1}, true)
                                      : sum(square(n.arg(x)), {-1}, true);
  const Tensor divisor = where(n.arg(equal(n.arg(total), 0)), ones_like(n.arg(total)), total);
  return {div(n.arg(x), kind == "L2" ? sqrt(n.arg(divisor)) : divisor)};
}

Tensors binarize(NodeCall& n) { return {cast(n.arg(greater(n.arg(0), n.real("threshold", 0))), n[0].dtype())}; }

Tensors impute(NodeCall& n) {
  const bool whole = !is_floating(n[0].dtype());
  if (whole) {
    const Integers values = n.integers("imputed_value_int64s");
    const std::int64_t count = static_cast<std::int64_t>(values.size());
    n.require(n[0].rank() > 0 && (count == 1 || count == n[0].size(-1)), "there must be one number for each feature");
    const Tensor missing = equal(n.arg(0), static_cast<double>(n.integer("replaced_value_int64", 0)));
    return {where(n.arg(missing), as(n, known_integers(values), n[0].dtype()), n[0])};
  }
  const double replaced = n.real("replaced_value_float", 0);
  const Tensor values = last_axis(n, n.reals("imputed_value_floats"), "imputed_value_floats");
  const Tensor missing = std::isnan(replaced) ? isnan(n.arg(0)) : equal(n.arg(0), replaced);
  return {where(n.arg(missing), as(n, values, n[0].dtype()), n[0])};
}

// Columns by their numbers. A list of features gives one row.
Tensors extract_columns(NodeCall& n) {
  n.require(n[0].rank() > 0, "the operand must have one dimension or more");
  const Tensor rows = n[0].rank() > 1 ? n[0] : reshape(n.arg(0), {1, n[0].numel()});
  const Tensor places = n[1].rank() == 1 ? n[1] : reshape(n.arg(1), {n[1].numel()});
  return {index_select(n.arg(rows), rows.rank() - 1, places)};
}

Tensors join_features(NodeCall& n) {
  const Integers widths = n.integers("inputdimensions");
  n.require(widths.size() == n.count() && n.count() > 0, "there must be one number for each operand in 'inputdimensions'");
  Tensors parts;
  for (std::size_t i = 0; i < n.count(); ++i) {
    const std::int64_t rows = n[i].rank() == 0 ? 0 : n[i].size(0);
    n.require(rows > 0 && n[i].numel() / rows == widths[i], "an operand has another number of features than it says");
    parts.push_back(as(n, reshape(n.arg(i), {rows, widths[i]}), DType::f32));
  }
  return {concat(parts, 1, n.site())};
}

Tensors encode_one_hot(NodeCall& n) {
  n.require(!n.has("cats_strings"), kNoTexts);
  const Tensor classes = known_integers(n.integers("cats_int64s"));
  const Tensor x = unsqueeze(n.arg(as(n, n[0], DType::i64)), -1);
  return {cast(n.arg(equal(n.arg(x), classes)), DType::f32)};
}

// The keys or the values of a LabelEncoder: a list of integers, a list of numbers, or a tensor.
Tensor entries(const NodeCall& n, const std::string& name) {
  n.require(!n.has(name + "_strings"), kNoTexts);
  if (const TensorData* data = n.tensor(name + "_tensor")) return tensor_of(*data, n.model_path());
  return n.has(name + "_int64s") ? known_integers(n.integers(name + "_int64s")) : constant_of(n.reals(name + "_floats"));
}

Tensor default_entry(const NodeCall& n, DType dtype) {
  if (const TensorData* data = n.tensor("default_tensor")) return reshape(tensor_of(*data, n.model_path()), Shape{});
  const double value = is_floating(dtype) ? n.real("default_float", 0) : static_cast<double>(n.integer("default_int64", -1));
  return full({}, value, dtype, n.site());
}

// Each element becomes the value of the key that it equals.
Tensors encode_labels(NodeCall& n) {
  const Tensor keys = entries(n, "keys"), values = entries(n, "values");
  n.require(keys.rank() == 1 && keys.shape() == values.shape() && keys.numel() > 0, "there must be one value for each key");
  n.require(keys.dtype() == n[0].dtype(), "the keys must be of the type of the operand");
  const Tensor hits = cast(n.arg(equal(n.arg(unsqueeze(n.arg(0), -1)), keys)), DType::i64);
  const Tensor flat = reshape(n.arg(argmax(n.arg(hits), -1)), {n[0].numel()});
  const Tensor found = reshape(n.arg(index_select(n.arg(values), 0, flat)), n[0].shape());
  return {where(n.arg(greater(n.arg(sum(n.arg(hits), {-1})), 0)), found, default_entry(n, values.dtype()))};
}

Tensors keep_scores(NodeCall& n) {
  n.note("ZipMap makes a list of maps from classes to scores; the scores stay a tensor with a column for each class.");
  return {alias(n.arg(0))};
}

}  // namespace

std::vector<OnnxOp> ml_feature_ops() {
  return {
      {"Scaler", 1, "offset scale", scale},
      {"Normalizer", 1, "norm", normalize},
      {"Binarizer", 1, "threshold", binarize},
      {"Imputer", 1, "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64", impute},
      {"ArrayFeatureExtractor", 1, "", extract_columns},
      {"FeatureVectorizer", 1, "inputdimensions", join_features},
      {"OneHotEncoder", 1, "cats_int64s cats_strings zeros", encode_one_hot},
      {"LabelEncoder", 2,
       "default_float default_int64 default_string default_tensor keys_floats keys_int64s keys_strings keys_tensor "
       "values_floats values_int64s values_strings values_tensor",
       encode_labels},
      {"ZipMap", 1, "classlabels_int64s classlabels_strings", keep_scores},
  };
}

}  // namespace tapedeck::onnx
