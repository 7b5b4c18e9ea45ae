// Linear models and support vectors: a score is a sum of products.
#include <tapedeck/capture/onnx/ml/rows.h>

#include <tapedeck/engine/ops/ops.h>

namespace tapedeck::onnx {

namespace {

Tensor probabilities(const NodeCall& n, const Tensor& scores) {
  const std::string kind = n.text("post_transform", "NONE");
  if (kind == "SOFTMAX") return softmax(n.arg(scores), -1);
  if (kind == "LOGISTIC") return sigmoid(n.arg(scores));
  n.require(kind == "NONE", "the post_transform '" + kind + "' is not supported; NONE, SOFTMAX and LOGISTIC are");
  return scores;
}

// The coefficients [scores, features] and the intercepts are operands: lift_coefficients() made them so.
Tensor linear_scores(const NodeCall& n, const Tensor& x) {
  n.require(n[1].rank() == 2 && n[1].size(1) == x.size(1), "there must be one coefficient for each score and feature");
  return n.has(2) ? linear(n.arg(x), transpose_last(n.arg(1)), n[2]) : linear(n.arg(x), transpose_last(n.arg(1)));
}

Tensors regress(NodeCall& n) { return {probabilities(n, linear_scores(n, rows_of(n)))}; }

// One score stands for two classes: the second one, where it is positive.
Tensors two_classes(const NodeCall& n, const Tensor& score, const Integers& labels) {
  const std::string kind = n.text("post_transform", "NONE");
  n.require(kind == "NONE" || kind == "LOGISTIC", "the post_transform '" + kind + "' of one score is not supported");
  const Tensor of_second = probabilities(n, score);
  const Tensor places = cast(n.arg(reshape(n.arg(greater(n.arg(score), 0)), {score.numel()})), DType::i64);
  return {index_select(n.arg(known_integers(labels)), 0, places),
          concat({add(n.arg(neg(n.arg(of_second))), 1), of_second}, 1, n.site())};
}

// The label of the largest score, and what is made of the scores.
Tensors classify(NodeCall& n) {
  n.require(!n.has("classlabels_strings"), kNoTexts);
  const Tensor scores = linear_scores(n, rows_of(n));
  const Integers labels = n.integers("classlabels_ints");
  if (scores.size(1) == 1 && labels.size() == 2) return two_classes(n, scores, labels);
  n.require(scores.size(1) == static_cast<std::int64_t>(labels.size()), "there must be one label for each score");
  return {index_select(n.arg(known_integers(labels)), 0, argmax(n.arg(scores), 1)), probabilities(n, scores)};
}

// [n, vectors]: how alike each row and each vector are.
Tensor kernel(const NodeCall& n, const Tensor& x, const Tensor& vectors) {
  const std::string kind = n.text("kernel_type", "LINEAR");
  const std::vector<double> parameters = n.reals("kernel_params", {0, 0, 3});
  n.require(parameters.size() == 3, "there must be three numbers in 'kernel_params'");
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  if (kind == "RBF") {
    const Tensor apart = sub(n.arg(unsqueeze(n.arg(x), 1)), unsqueeze(n.arg(vectors), 0));
    return exp(n.arg(mul(n.arg(sum(n.arg(square(n.arg(apart))), {2})), -gamma)));
  }
  const Tensor products = matmul(n.arg(x), transpose_last(n.arg(vectors)));
  if (kind == "LINEAR") return products;
  const Tensor line = add(n.arg(mul(n.arg(products), gamma)), offset);
  if (kind == "POLY") return pow(n.arg(line), degree);
  n.require(kind == "SIGMOID", "the kernel '" + kind + "' is not known");
  return tanh(n.arg(line));
}

// Without support vectors the coefficients are those of the features.
Tensors support_vectors(NodeCall& n) {
  const Tensor x = rows_of(n);
  const std::vector<double> coefficients = n.reals("coefficients"), rho = n.reals("rho");
  const std::int64_t count = n.integer("n_supports", 0);
  n.require(rho.size() == 1, "there must be one number in 'rho'");
  n.require(n.text("post_transform", "NONE") == "NONE", "a post_transform is not supported");
  Tensor y;
  if (count == 0) {
    n.require(n.text("kernel_type", "LINEAR") == "LINEAR", "a kernel other than LINEAR needs support vectors");
    n.require(static_cast<std::int64_t>(coefficients.size()) == x.size(1), "there must be one coefficient for each feature");
    y = matmul(n.arg(x), constant_of(coefficients, n.shape({x.size(1), 1})));
  } else {
    const std::vector<double> values = n.reals("support_vectors");
    n.require(static_cast<std::int64_t>(coefficients.size()) == count, "there must be one coefficient for each support vector");
    n.require(x.size(1) == 0 ? values.empty()
                             : static_cast<std::int64_t>(values.size()) / x.size(1) == count &&
                                   static_cast<std::int64_t>(values.size()) % x.size(1) == 0,
              "there must be one number for each support vector and feature");
    const Tensor alike = kernel(n, x, constant_of(values, n.shape({count, x.size(1)})));
    y = matmul(n.arg(alike), constant_of(coefficients, n.shape({count, 1})));
  }
  y = add(n.arg(y), rho[0]);
  if (!n.flag("one_class")) return {y};
  return {where(n.arg(greater(n.arg(y), 0)), ones_like(n.arg(y)), full_like(n.arg(y), -1))};
}

}  // namespace

std::vector<OnnxOp> ml_linear_ops() {
  return {
      {"LinearRegressor", 1, "coefficients intercepts post_transform targets", regress},
      {"LinearClassifier", 1, "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform",
       classify},
      {"SVMRegressor", 1, "coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors",
       support_vectors},
  };
}

}  // namespace tapedeck::onnx
