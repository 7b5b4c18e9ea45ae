// Ops that move elements, and ops that make tensors from nothing.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/create.h>
#include <tapedeck/kernels/attrs/movement.h>
#include <tapedeck/kernels/attrs/rearrange.h>

#include <algorithm>
#include <limits>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// ---- views ----

// Only the axes that are cut; but one in any case, so that the result is a node.
Terms slice(N& n) {
  const auto& a = n.attributes<SliceAttrs>();
  const Shape& shape = n.in(0).shape;
  if (shape.rank == 0) return {n[0].apply("Identity")};
  Integers starts, stops, axes, steps;
  bool strides = false;
  for (int i = 0; i < shape.rank; ++i) {
    const std::int64_t step = a.steps.size == 0 ? 1 : a.steps[i];
    if (a.starts[i] == 0 && a.stops[i] == shape[i] && step == 1) continue;
    starts.push_back(a.starts[i]);
    stops.push_back(a.stops[i]);
    axes.push_back(i);
    steps.push_back(step);
    strides = strides || step != 1;
  }
  if (axes.empty()) starts = {0}, stops = {shape[0]}, axes = {0};
  Terms operands = {n[0], n.list(starts), n.list(stops), n.list(axes)};
  if (strides) operands.push_back(n.list(steps));
  return {n.add("Slice", operands, n.in(0).dtype)};
}

Terms flip(N& n) {
  const Integers axes = list_of(n.attributes<FlipAttrs>().axes);
  if (axes.empty()) return {n[0].apply("Identity")};
  const Integers first(axes.size(), -1), last(axes.size(), std::numeric_limits<std::int64_t>::min());
  return {n.add("Slice", {n[0], n.list(first), n.list(last), n.list(axes), n.list(first)}, n.in(0).dtype)};
}

Terms roll(N& n) {
  const auto& a = n.attributes<RollAttrs>();
  Term x = n[0];
  for (int i = 0; i < a.axes.size; ++i) {
    const std::int64_t size = n.in(0).shape[static_cast<int>(a.axes[i])];
    const std::int64_t shift = size == 0 ? 0 : (a.shifts[i] % size + size) % size;
    if (shift == 0) continue;
    x = joined({part_of(x, a.axes[i], size - shift, size), part_of(x, a.axes[i], 0, size - shift)}, a.axes[i]);
  }
  return {x};
}

Terms triangle(N& n, bool upper) {
  const Term diagonal = n.integers({}, {n.attributes<TriangleAttrs>().diagonal});
  return {n.add("Trilu", {n[0], diagonal}, n.in(0).dtype, {{"upper", upper ? 1 : 0}})};
}

Terms pad(N& n, const Ints& before, const Ints& after, double value) {
  const Term result = padded(n[0], list_of(before), list_of(after), value);
  return {result.name() == n[0].name() ? n[0].apply("Identity") : result};
}

Terms pad_by_elements(N& n) {
  const auto& a = n.attributes<PadModeAttrs>();
  Integers pads = list_of(a.before);
  pads.insert(pads.end(), a.after.begin(), a.after.end());
  const std::string mode = a.mode == Name("reflect") ? "reflect" : a.mode == Name("replicate") ? "edge" : "wrap";
  return {n.add("Pad", {n[0], n.list(pads)}, n.in(0).dtype, {{"mode", mode}})};
}

// The element that pad_mode shows at place `i` of an axis of `size` elements, counted from the first one.
std::int64_t shown(std::int64_t i, std::int64_t size, const Name& mode) {
  if (mode == Name("replicate")) return std::clamp<std::int64_t>(i, 0, size - 1);
  if (mode == Name("circular")) return (i % size + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1), at = (i % period + period) % period;
  return at < size ? at : period - at;
}

// x with its slices along an axis added up at the places of a new axis of `size` elements.
Term gathered_back(const Term& x, Integers shape, std::int64_t axis, std::int64_t size, const Integers& places) {
  N& n = x.at();
  Integers line(shape.size(), 1), result = shape;
  line[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(places.size());
  result[static_cast<std::size_t>(axis)] = size;
  const Term index = expanded(n.integers(shape_of(line), places), shape_of(shape));
  return scattered(n.filled(shape_of(result), 0, x.dtype()), index, x, axis, true);
}

Terms pad_by_elements_grad(N& n) {
  const auto& a = n.attributes<PadModeAttrs>();
  Integers shape = list_of(n.in(0).shape);
  Term x = n[0];
  for (int i = 0; i < n.in(0).shape.rank; ++i) {
    if (a.before[i] == 0 && a.after[i] == 0) continue;
    const std::int64_t size = n.out().shape[i];
    Integers places;
    for (std::int64_t k = 0; k < n.in(0).shape[i]; ++k) places.push_back(shown(k - a.before[i], size, a.mode));
    x = gathered_back(x, shape, i, size, places);
    shape[static_cast<std::size_t>(i)] = size;
  }
  return {x};
}

Terms concat(N& n) {
  Terms parts;
  for (int i = 0; i < n.count(); ++i) parts.push_back(n[i]);
  return {joined(parts, n.attributes<AxisAttrs>().axis)};
}

Terms unstack(N& n) {
  const std::int64_t count = n.in(0).shape[0];
  const std::vector<DType> dtypes(static_cast<std::size_t>(count), n.in(0).dtype);
  const Terms parts = n.add_several("Split", {n[0], n.list(Integers(dtypes.size(), 1))}, dtypes, {{"axis", 0}});
  Terms results;
  for (std::size_t i = 0; i < parts.size(); ++i)
    results.push_back(n.wants(static_cast<int>(i)) ? n.add("Squeeze", {parts[i], n.list({0})}, n.in(0).dtype) : Term());
  return results;
}

// ---- parts that are replaced ----

// base with `piece` at flat places: one index for each element of the piece.
Term replaced_flat(const Term& base, const Shape& shape, const Term& places, const Term& piece) {
  const Term flat =
      scattered(reshaped(base, Integers{-1}), reshaped(places, Integers{-1}), reshaped(piece, Integers{-1}), 0, false);
  return reshaped(flat, shape);
}

// The flat place of an element is the sum of what its coordinates add.
Terms slice_assign(N& n) {
  const auto& a = n.attributes<SliceAttrs>();
  const Shape &shape = n.in(0).shape, &piece = n.in(1).shape;
  if (piece.numel() == 0 || shape.rank == 0) return {n[piece.numel() == 0 ? 0 : 1].apply("Identity")};
  std::int64_t stride = shape.numel();
  Term places;
  for (int i = 0; i < shape.rank; ++i) {
    stride /= shape[i];
    Integers line(static_cast<std::size_t>(shape.rank), 1), own;
    line[static_cast<std::size_t>(i)] = piece[i];
    for (std::int64_t k = 0; k < piece[i]; ++k)
      own.push_back((a.starts[i] + k * (a.steps.size == 0 ? 1 : a.steps[i])) * stride);
    const Term along = n.integers(shape_of(line), own);
    places = i == 0 ? along : places + along;
  }
  return {replaced_flat(n[0], shape, places, n[1])};
}

// A tensor with the two axes of a diagonal at the end, as one.
struct Diagonal {
  Integers axes, back;   // the order of axes, and the order that undoes it
  Integers sizes, flat;  // the sizes in that order, and with the last two as one
  Integers places;       // of the diagonal in the last axis of `flat`
};

Diagonal diagonal_of(const DiagonalAttrs& a, const Shape& shape) {
  Diagonal d;
  for (int i = 0; i < shape.rank; ++i)
    if (i != a.axis1 && i != a.axis2) d.axes.push_back(i);
  d.axes.push_back(a.axis1);
  d.axes.push_back(a.axis2);
  d.back.resize(d.axes.size());
  for (std::size_t i = 0; i < d.axes.size(); ++i) {
    d.back[static_cast<std::size_t>(d.axes[i])] = static_cast<std::int64_t>(i);
    d.sizes.push_back(shape[static_cast<int>(d.axes[i])]);
  }
  d.flat.assign(d.sizes.begin(), d.sizes.end() - 2);
  const std::int64_t rows = d.sizes[d.sizes.size() - 2], columns = d.sizes.back();
  d.flat.push_back(rows * columns);
  const DiagonalRange range = diagonal_range(rows, columns, a.offset);
  for (std::int64_t i = 0; i < range.length; ++i) d.places.push_back((range.row + i) * columns + range.column + i);
  return d;
}

Terms diagonal(N& n) {
  const Diagonal d = diagonal_of(n.attributes<DiagonalAttrs>(), n.in(0).shape);
  const auto last = static_cast<std::int64_t>(d.flat.size()) - 1;
  return {gathered(reshaped(transposed(n[0], d.axes), d.flat), n.list(d.places), last)};
}

Terms diagonal_assign(N& n) {
  const Diagonal d = diagonal_of(n.attributes<DiagonalAttrs>(), n.in(0).shape);
  if (n.in(1).numel() == 0) return {n[0].apply("Identity")};
  const Term flat = reshaped(transposed(n[0], d.axes), d.flat), places = expanded(n.list(d.places), n.in(1).shape);
  const Term done = scattered(flat, places, n[1], static_cast<std::int64_t>(d.flat.size()) - 1, false);
  return {transposed(reshaped(done, d.sizes), d.back)};
}

// ---- from nothing ----

Terms arange(N& n) {
  const auto& a = n.attributes<ArangeAttrs>();
  const DType dtype = a.dtype == DType::f16 || a.dtype == DType::bf16 || a.dtype == DType::u8 ? DType::f32 : a.dtype;
  const Term range = n.add("Range", {n.number(a.start, dtype), n.number(a.stop, dtype), n.number(a.step, dtype)}, dtype);
  return {range.as(a.dtype)};
}

Terms linspace(N& n) {
  const auto& a = n.attributes<LinspaceAttrs>();
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.count; ++i) {
    const double step = a.count > 1 ? (a.stop - a.start) / static_cast<double>(a.count - 1) : 0;
    values.push_back(i > 0 && i == a.count - 1 ? a.stop : a.start + step * static_cast<double>(i));
  }
  return {n.reals({a.count}, values, a.dtype)};
}

Terms eye(N& n) {
  const auto& a = n.attributes<EyeAttrs>();
  const Term row = reshaped(counted(n, a.rows), Integers{a.rows, 1});
  return {is(row, counted(n, a.columns)).as(a.dtype)};
}

}  // namespace

std::vector<ExportOp> shape_exports() {
  return {
      composed("reshape", [](N& n) { return Terms{reshaped(n[0], n.out().shape)}; }),
      composed("transpose", [](N& n) { return Terms{transposed(n[0], list_of(n.attributes<PermuteAttrs>().axes))}; }),
      composed("broadcast_to", [](N& n) { return Terms{expanded(n[0], n.out().shape)}; }),
      composed("slice", slice),
      composed("flip", flip),
      composed("roll", roll),
      composed("tril", [](N& n) { return triangle(n, false); }),
      composed("triu", [](N& n) { return triangle(n, true); }),
      composed("pad", [](N& n) { return pad(n, n.attributes<PadAttrs>().before, n.attributes<PadAttrs>().after, 0); }),
      composed("pad_constant",
               [](N& n) {
                 const auto& a = n.attributes<PadConstantAttrs>();
                 return pad(n, a.before, a.after, a.value);
               }),
      composed("pad_mode", pad_by_elements),
      composed("pad_mode_grad", pad_by_elements_grad),
      composed("concat", concat),
      composed("unstack", unstack),
      composed("slice_assign", slice_assign),
      composed("diagonal", diagonal),
      composed("diagonal_assign", diagonal_assign),
      composed("arange", arange),
      composed("linspace", linspace),
      composed("eye", eye),
      composed("full",
               [](N& n) {
                 const auto& a = n.attributes<FullAttrs>();
                 return Terms{n.filled(n.out().shape, a.value, a.dtype)};
               }),
  };
}

}  // namespace tapedeck::onnx
