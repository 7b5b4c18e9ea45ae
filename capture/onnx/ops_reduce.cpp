// Reductions, sorts and scans.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

struct Reduction {
  Ints axes;
  bool keepdims;
  bool none;  // no axis at all: each element is a group of its own
};

// The axes are an operand from opset 18 on, for ReduceSum from 13 on.
Reduction reduction_of(const NodeCall& n) {
  const Integers given = n.integers(1, "axes");
  Reduction r{{}, n.flag("keepdims", true), given.empty() && n.flag("noop_with_empty_axes")};
  for (std::int64_t axis : given) r.axes.push_back(n.axis(axis, n[0].rank()));
  if (given.empty() && !r.none)
    for (int i = 0; i < n[0].rank(); ++i) r.axes.push_back(i);
  return r;
}

using Reduce = Tensor (*)(const Arg& x, const Ints& axes, bool keepdims);

// `reduce` over the axes; over none it must give each element as if it were a group.
Tensors reduced(NodeCall& n, Reduce reduce, const Tensor& x) {
  const Reduction r = reduction_of(n);
  if (!r.none && r.axes.size > 0) return {reduce(n.arg(x), r.axes, r.keepdims)};
  return {alias(n.arg(x))};
}

template <Reduce f>
Tensors plain(NodeCall& n) {
  return reduced(n, f, n[0]);
}

Tensors sum_of_logs(NodeCall& n) { return {log(n.arg(plain<sum>(n)[0]))}; }
Tensors sum_of_squares(NodeCall& n) { return reduced(n, sum, square(n.arg(0))); }
Tensors sum_of_magnitudes(NodeCall& n) { return reduced(n, sum, abs(n.arg(0))); }
Tensors euclidean(NodeCall& n) {
  const Tensor squares = sum_of_squares(n)[0];
  if (is_floating(squares.dtype())) return {sqrt(n.arg(squares))};
  return {cast(sqrt(cast(n.arg(squares), DType::f32)), squares.dtype())};
}

// Sums of integers stay in their dtype.
Tensor sum_in_dtype(const Arg& x, const Ints& axes, bool keepdims) {
  const Tensor total = sum(x, axes, keepdims);
  return total.dtype() == x.tensor().dtype() ? total : cast(total, x.tensor().dtype());
}

Tensor mean_in_dtype(const Arg& x, const Ints& axes, bool keepdims) {
  if (is_floating(x.tensor().dtype())) return mean(x, axes, keepdims);
  return cast(mean(cast(x, DType::f64), axes, keepdims), x.tensor().dtype());
}

// Of bools the largest is "any", and the smallest is "all".
Tensor largest_of(const Arg& x, const Ints& axes, bool keepdims) {
  if (x.tensor().dtype() == DType::boolean) return any(x, axes, keepdims);
  return max(x, axes, keepdims);
}

Tensor smallest_of(const Arg& x, const Ints& axes, bool keepdims) {
  if (x.tensor().dtype() == DType::boolean) return all(x, axes, keepdims);
  return min(x, axes, keepdims);
}

template <Tensor (*f)(const Arg&, std::int64_t)>
Tensors place_of_extreme(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", 0), n[0].rank());
  const bool last = n.flag("select_last_index");
  Tensor at = f(last ? n.arg(flip(n.arg(0), {axis})) : n.arg(0), axis);
  if (last) at = sub(n[0].size(static_cast<int>(axis)) - 1, at);
  return {n.flag("keepdims", true) ? unsqueeze(n.arg(at), axis) : at};
}

Tensors largest(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", -1), n[0].rank());
  const std::int64_t k = n.opset() < 10 ? n.integer("k") : n.integer(1);
  n.require(k >= 0 && k <= n[0].size(static_cast<int>(axis)), "k is larger than the axis");
  const auto [values, places] = topk(n.arg(0), k, axis, n.flag("largest", true), n.flag("sorted", true));
  return {values, places.dtype() == DType::i64 ? places : cast(places, DType::i64)};
}

Tensors cumulative_sum(NodeCall& n) {
  return {cumsum(n.arg(0), n.axis(n.integer(1), n[0].rank()), {n.flag("exclusive"), n.flag("reverse")})};
}

}  // namespace

std::vector<OnnxOp> reduce_ops() {
  constexpr const char* kAttributes = "axes keepdims noop_with_empty_axes";
  return {
      {"ReduceSum", 1, kAttributes, plain<sum_in_dtype>},
      {"ReduceMean", 1, kAttributes, plain<mean_in_dtype>},
      {"ReduceMax", 1, kAttributes, plain<largest_of>},
      {"ReduceMin", 1, kAttributes, plain<smallest_of>},
      {"ReduceProd", 1, kAttributes, plain<prod>},
      {"ReduceL1", 1, kAttributes, sum_of_magnitudes},
      {"ReduceL2", 1, kAttributes, euclidean},
      {"ReduceSumSquare", 1, kAttributes, sum_of_squares},
      {"ReduceLogSum", 1, kAttributes, sum_of_logs, 28},
      {"ReduceLogSumExp", 1, kAttributes, plain<logsumexp>, 28},
      {"ArgMax", 1, "axis keepdims select_last_index", place_of_extreme<argmax>},
      {"ArgMin", 1, "axis keepdims select_last_index", place_of_extreme<argmin>},
      {"TopK", 1, "axis k largest sorted", largest},
      {"CumSum", 11, "exclusive reverse", cumulative_sum},
  };
}

}  // namespace tapedeck::onnx
