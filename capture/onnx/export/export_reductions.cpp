// Reductions and statistics, and resampling of images.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/interpolate.h>
#include <tapedeck/kernels/attrs/statistics.h>

#include <cmath>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

Terms reduce(N& n, const char* op) {
  const auto& a = n.attributes<ReduceAttrs>();
  return {reduced(op, n[0], list_of(a.axes), a.keepdims)};
}

Terms place_of_extreme(N& n, const char* op) {
  return {n.add(op, {n[0]}, DType::i64, {{"axis", n.attributes<AxisAttrs>().axis}, {"keepdims", 0}})};
}

// The number of elements over the axes that are not zero.
Term nonzeros(N& n, const Ints& axes, bool keepdims) {
  return reduced("ReduceSum", n[0].as(DType::boolean).as(DType::i64), list_of(axes), keepdims);
}

Terms any_of(N& n) {
  const auto& a = n.attributes<ReduceAttrs>();
  return {nonzeros(n, a.axes, a.keepdims) > 0};
}

Terms all_of(N& n) {
  const auto& a = n.attributes<ReduceAttrs>();
  const Term zeros = negated(n[0].as(DType::boolean)).as(DType::i64);
  return {is(reduced("ReduceSum", zeros, list_of(a.axes), a.keepdims), 0)};
}

Term variance(N& n) {
  const auto& a = n.attributes<VarAttrs>();
  double count = 1;
  for (const std::int64_t axis : a.axes) count *= static_cast<double>(n.in(0).shape[static_cast<int>(axis)]);
  const Term far = n[0] - reduced("ReduceMean", n[0], list_of(a.axes), true);
  return reduced("ReduceSum", far * far, list_of(a.axes), a.keepdims) / std::max(0.0, count - a.correction);
}

Terms norm(N& n) {
  const auto& a = n.attributes<NormAttrs>();
  const Integers axes = list_of(a.axes);
  if (a.p == 2) return {reduced("ReduceL2", n[0], axes, a.keepdims)};
  if (a.p == 1) return {reduced("ReduceL1", n[0], axes, a.keepdims)};
  if (a.p == 0) return {nonzeros(n, a.axes, a.keepdims).as(n.in(0).dtype)};
  if (std::isinf(a.p)) return {reduced(a.p > 0 ? "ReduceMax" : "ReduceMin", magnitude_of(n[0]), axes, a.keepdims)};
  return {power(reduced("ReduceSum", power(magnitude_of(n[0]), a.p), axes, a.keepdims), 1 / a.p)};
}

// ---- over several operands ----

Terms all_finite(N& n) {
  Terms counts;
  for (int i = 0; i < n.count(); ++i) {
    const Term flat = reshaped(n[i].as(DType::f32), Integers{-1});
    const Term wrong = either(n.add("IsNaN", {flat}, DType::boolean), n.add("IsInf", {flat}, DType::boolean));
    counts.push_back(reduced("ReduceSum", wrong.as(DType::i64), {0}, true));
  }
  return {is(reduced("ReduceSum", counts.size() == 1 ? counts[0] : joined(counts, 0), {0}, false), 0)};
}

Terms global_norm(N& n) {
  Terms squares;
  for (int i = 0; i < n.count(); ++i)
    squares.push_back(reduced("ReduceSumSquare", reshaped(n[i].as(n.out().dtype), Integers{-1}), {0}, true));
  return {root_of(reduced("ReduceSum", squares.size() == 1 ? squares[0] : joined(squares, 0), {0}, false))};
}

// ---- resampling ----

Terms resize(N& n, const char* mode, const char* coordinates, const Attributes& more) {
  Attributes attributes = more;
  attributes.emplace_back("mode", std::string(mode));
  attributes.emplace_back("coordinate_transformation_mode", std::string(coordinates));
  return {n.add("Resize", {n[0], Term(), Term(), n.list(list_of(n.out().shape))}, n.in(0).dtype, attributes)};
}

Terms bilinear(N& n) {
  return resize(n, "linear", n.attributes<InterpolateBilinearAttrs>().align_corners ? "align_corners" : "half_pixel", {});
}

// [out, in]: how much each element of an axis has in each result.
Term bilinear_shares(N& n, std::int64_t out, std::int64_t in, bool align_corners) {
  std::vector<double> values(static_cast<std::size_t>(out * in));
  for (std::int64_t i = 0; i < out; ++i) {
    const Tap tap = bilinear_tap(i, in, out, align_corners);
    values[static_cast<std::size_t>(i * in + tap.low)] += 1 - tap.part;
    values[static_cast<std::size_t>(i * in + tap.high)] += tap.part;
  }
  return n.reals({out, in}, values, n.in(0).dtype);
}

// The result is A x B'; so the gradient is A' dy B.
Terms bilinear_grad(N& n) {
  const Shape &dy = n.in(0).shape, &dx = n.out().shape;
  const bool align = n.attributes<InterpolateBilinearAttrs>().align_corners;
  const Term rows = transposed(bilinear_shares(n, dy[2], dx[2], align), {1, 0});
  return {product(rows, product(n[0], bilinear_shares(n, dy[3], dx[3], align)))};
}

// One axis after the other: slices that show the same one are added.
Terms nearest_grad(N& n) {
  Integers shape = list_of(n.in(0).shape);
  Term x = n[0];
  for (int i = 2; i < n.in(0).shape.rank; ++i) {
    const std::int64_t out = n.in(0).shape[i], in = n.out().shape[i];
    Integers line(shape.size(), 1), places, result = shape;
    line[static_cast<std::size_t>(i)] = out;
    result[static_cast<std::size_t>(i)] = in;
    for (std::int64_t k = 0; k < out; ++k) places.push_back(k * in / out);
    const Term index = expanded(n.integers(shape_of(line), places), shape_of(shape));
    x = scattered(n.filled(shape_of(result), 0, x.dtype()), index, x, i, true);
    shape = result;
  }
  return {x};
}

}  // namespace

std::vector<ExportOp> reduce_exports() {
  return {
      composed("sum", [](N& n) { return reduce(n, "ReduceSum"); }),
      composed("mean", [](N& n) { return reduce(n, "ReduceMean"); }),
      composed("max", [](N& n) { return reduce(n, "ReduceMax"); }),
      composed("min", [](N& n) { return reduce(n, "ReduceMin"); }),
      composed("prod", [](N& n) { return reduce(n, "ReduceProd"); }),
      composed("logsumexp", [](N& n) { return reduce(n, "ReduceLogSumExp"); }),
      composed("argmax", [](N& n) { return place_of_extreme(n, "ArgMax"); }),
      composed("argmin", [](N& n) { return place_of_extreme(n, "ArgMin"); }),
      composed("any", any_of),
      composed("all", all_of),
      composed("count_nonzero",
               [](N& n) {
                 const auto& a = n.attributes<ReduceAttrs>();
                 return Terms{nonzeros(n, a.axes, a.keepdims)};
               }),
      composed("var", [](N& n) { return Terms{variance(n)}; }),
      composed("std", [](N& n) { return Terms{root_of(variance(n))}; }),
      composed("norm", norm),
      composed("all_finite", all_finite),
      composed("global_norm", global_norm),
      composed("interpolate_nearest",
               [](N& n) {
                 return resize(n, "nearest", "asymmetric", {{"nearest_mode", std::string("floor")}});
               }),
      composed("interpolate_nearest_grad", nearest_grad),
      composed("interpolate_bilinear", bilinear),
      composed("interpolate_bilinear_grad", bilinear_grad),
  };
}

}  // namespace tapedeck::onnx
