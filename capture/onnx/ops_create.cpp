// Constants, ranges and random numbers.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <cmath>

namespace tapedeck::onnx {

namespace {

template <class Element>
Tensor list_of(DType dtype, const std::vector<Element>& values) {
  return known_tensor({dtype, {static_cast<std::int64_t>(values.size())}}, values.data());
}

Tensors constant(NodeCall& n) {
  if (const TensorData* data = n.tensor("value")) return {tensor_of(*data, n.model_path())};
  if (n.has("value_float")) {
    const auto value = static_cast<float>(n.real("value_float", 0));
    return {known_tensor({DType::f32, {}}, &value)};
  }
  if (n.has("value_int")) {
    const std::int64_t value = n.integer("value_int");
    return {known_tensor({DType::i64, {}}, &value)};
  }
  if (n.has("value_floats")) {
    const std::vector<double> values = n.reals("value_floats");
    return {list_of(DType::f32, std::vector<float>(values.begin(), values.end()))};
  }
  if (n.has("value_ints")) return {known_integers(n.integers("value_ints"))};
  n.fail("it has no value of a supported type");
}

Tensors constant_of_shape(NodeCall& n) {
  const Shape shape = n.shape(n.integers(0));
  const TensorData* value = n.tensor("value");
  if (value == nullptr) return {full(shape, 0, DType::f32, n.site())};
  const Operand element = file_operand(*value, n.model_path());
  n.require(element.tensor.numel() == 1, "the value must have one element");
  const DType dtype = element.tensor.dtype();
  if (!is_floating(dtype)) return {full(shape, integers_of(element)[0], dtype, n.site())};
  return {full(shape, reals_of(element)[0], dtype, n.site())};
}

Tensors range(NodeCall& n) {
  const double count = std::ceil((n.real(1) - n.real(0)) / n.real(2));
  n.require(n.real(2) != 0 && count < 1e9, "the step must not be 0, and the range must not be huge");
  if (is_floating(n[0].dtype())) return {arange(n.real(0), n.real(1), n.real(2), n[0].dtype(), n.site())};
  return {arange(n.integer(0), n.integer(1), n.integer(2), n[0].dtype(), n.site())};
}

// A matrix with ones on the diagonal `k`.
Tensors eye_like(NodeCall& n) {
  n.require(n[0].rank() == 2, "the operand must have two dimensions");
  const DType dtype = n.has("dtype") ? n.dtype(n.integer("dtype")) : n[0].dtype();
  const std::int64_t k = n.integer("k", 0), rows = n[0].size(0), columns = n[0].size(1);
  n.require(k > -(std::int64_t{1} << 31) && k < (std::int64_t{1} << 31), "k is too large");
  if (k == 0) return {eye(rows, columns, dtype, n.site())};
  const Tensor row = reshape(arange(std::int64_t{0}, rows, 1, DType::i64, n.site()), {rows, 1});
  const Tensor column = arange(std::int64_t{0}, columns, 1, DType::i64, n.site());
  return {cast(equal(n.arg(add(n.arg(row), k)), column), dtype)};
}

DType float_dtype(const NodeCall& n, DType otherwise) { return n.has("dtype") ? n.dtype(n.integer("dtype")) : otherwise; }

Tensors random_normal(NodeCall& n, const Shape& shape, DType dtype) {
  return {normal(shape, n.real("mean", 0), n.real("scale", 1), dtype, n.site())};
}
Tensors random_uniform(NodeCall& n, const Shape& shape, DType dtype) {
  return {uniform(shape, n.real("low", 0), n.real("high", 1), dtype, n.site())};
}

Tensors bernoulli_like(NodeCall& n) {
  const Tensor drawn = bernoulli(n.arg(0));
  const DType dtype = float_dtype(n, n[0].dtype());
  return {drawn.dtype() == dtype ? drawn : cast(n.arg(drawn), dtype)};
}

Tensors draw_classes(NodeCall& n) {
  const Tensor drawn = multinomial(softmax(n.arg(0)), n.integer("sample_size", 1), true);
  const DType dtype = float_dtype(n, DType::i32);
  return {drawn.dtype() == dtype ? drawn : cast(n.arg(drawn), dtype)};
}

}  // namespace

std::vector<OnnxOp> create_ops() {
  return {
      {"Constant", 1, "value value_float value_floats value_int value_ints value_string value_strings sparse_value", constant},
      {"ConstantOfShape", 9, "value", constant_of_shape},
      {"Range", 11, "", range, 27},
      {"EyeLike", 9, "dtype k", eye_like},
      {"RandomNormal", 1, "dtype mean scale seed shape",
       [](NodeCall& n) { return random_normal(n, n.shape(n.integers("shape")), float_dtype(n, DType::f32)); }, 0, true},
      {"RandomNormalLike", 1, "dtype mean scale seed",
       [](NodeCall& n) { return random_normal(n, n[0].shape(), float_dtype(n, n[0].dtype())); }, 0, true},
      {"RandomUniform", 1, "dtype high low seed shape",
       [](NodeCall& n) { return random_uniform(n, n.shape(n.integers("shape")), float_dtype(n, DType::f32)); }, 0, true},
      {"RandomUniformLike", 1, "dtype high low seed",
       [](NodeCall& n) { return random_uniform(n, n[0].shape(), float_dtype(n, n[0].dtype())); }, 0, true},
      {"Bernoulli", 15, "dtype seed", bernoulli_like, 0, true},
      {"Multinomial", 7, "dtype sample_size seed", draw_classes, 0, true},
  };
}

}  // namespace tapedeck::onnx
