// Ops that read or write elements at places that are values themselves.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

// Places may be negative in ONNX: they count from the end.
Tensor from_start(const NodeCall& n, const Tensor& places, std::int64_t size) {
  const Tensor indices =
      places.dtype() == DType::i64 || places.dtype() == DType::i32 ? places : cast(n.arg(places), DType::i64);
  return where(n.arg(less(n.arg(indices), 0)), add(n.arg(indices), size), indices);
}

// Known places are computed here, so that the graph has a constant and not the ops above.
Tensor places_of(const NodeCall& n, std::size_t operand, std::int64_t size) {
  if (!n.is_known(operand)) return from_start(n, n[operand], size);
  Integers places = n.integers(operand);
  for (std::int64_t& p : places) {
    n.require(p >= -size && p < size, "an index is outside the axis");
    p = p < 0 ? p + size : p;
  }
  return known_tensor({DType::i64, n[operand].shape()}, places.data());
}

// [before, axis, after] and places [p...] -> [before, p..., after]. The rows of a table by unknown numbers are an embedding.
Tensors gather_slices(NodeCall& n) {
  const Tensor& x = n[0];
  const std::int64_t axis = n.axis(n.integer("axis", 0), x.rank()), size = x.size(static_cast<int>(axis));
  if (axis == 0 && x.rank() == 2 && is_floating(x.dtype()) && x.role() == Role::parameter && !n.is_known(1))
    return {embedding(n.arg(0), n[1])};
  const Tensor places = places_of(n, 1, size);
  Integers sizes(x.shape().begin(), x.shape().begin() + axis);
  sizes.insert(sizes.end(), places.shape().begin(), places.shape().end());
  sizes.insert(sizes.end(), x.shape().begin() + axis + 1, x.shape().end());
  const Shape result = n.shape(sizes);
  if (n.is_known(1) && places.numel() == 1) {
    const Integers at = n.integers(1);
    const std::int64_t first = at[0] < 0 ? at[0] + size : at[0];
    return {reshape(n.arg(slice_along(n.arg(x), axis, first, first + 1)), result)};
  }
  const Tensor flat = places.rank() == 1 ? places : reshape(n.arg(places), {places.numel()});
  const Tensor rows = index_select(n.arg(x), axis, flat);
  return {places.rank() == 1 ? rows : reshape(n.arg(rows), result)};
}

Tensors gather_elements(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", 0), n[0].rank());
  return {gather(n.arg(0), places_of(n, 1, n[0].size(static_cast<int>(axis))), axis)};
}

// The sizes of the axes that the tuples of indices name, as a tensor that broadcasts to the tuples.
Tensor tuples_from_start(const NodeCall& n, const Tensor& x, const Tensor& tuples, std::int64_t batch) {
  n.require(tuples.rank() > 0, "the indices must have one dimension or more");
  const std::int64_t width = tuples.size(-1);
  n.require(width + batch <= x.rank(), "a tuple of indices is longer than the operand has dimensions");
  Integers sizes;
  for (std::int64_t i = 0; i < width; ++i) sizes.push_back(x.size(static_cast<int>(batch + i)));
  return where(n.arg(less(n.arg(tuples), 0)), add(n.arg(tuples), known_integers(sizes)), tuples);
}

Tensors gather_tuples(NodeCall& n) {
  const std::int64_t batch = n.integer("batch_dims", 0);
  n.require(batch >= 0 && batch < n[0].rank(), "there are fewer dimensions than 'batch_dims'");
  return {gather_nd(n.arg(0), tuples_from_start(n, n[0], n[1], batch), batch)};
}

void require_reduction(const NodeCall& n, const std::string& name) {
  const bool known = name == "add" || name == "mul" || name == "max" || name == "min";
  n.require(known, "the reduction '" + name + "' is none of 'none', 'add', 'mul', 'max' and 'min'");
}

Tensors scatter_elements(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", 0), n[0].rank());
  const Tensor places = places_of(n, 1, n[0].size(static_cast<int>(axis)));
  const std::string reduction = n.text("reduction", "none");
  if (reduction == "none") return {scatter(n.arg(0), places, n[2], axis)};
  require_reduction(n, reduction);
  return {scatter_reduce(n.arg(0), places, n[2], axis, reduction)};
}

Tensors scatter_tuples(NodeCall& n) {
  ScatterNdAttrs attrs;
  const std::string reduction = n.text("reduction", "none");
  if (reduction != "none") require_reduction(n, reduction);
  attrs.reduction = reduction;
  return {scatter_nd(n.arg(0), tuples_from_start(n, n[0], n[1], 0), n[2], attrs)};
}

// Labels outside the classes give rows without a one; so they are compared and not used as places.
Tensors one_hot_values(NodeCall& n) {
  const double depth = n.real(1);
  n.require(depth >= 1 && depth < 1e9, "the number of classes must be positive and not huge");
  const auto classes = static_cast<std::int64_t>(depth);
  const std::int64_t axis = n.axis(n.integer("axis", -1), n[0].rank() + 1);
  n.require(n[2].numel() == 2, "there must be two values");
  const Tensor labels = from_start(n, cast(n.arg(0), DType::i64), classes);
  Integers line(static_cast<std::size_t>(n[0].rank() + 1), 1);
  line[static_cast<std::size_t>(axis)] = classes;
  const Tensor numbers = reshape(arange(std::int64_t{0}, classes, 1, DType::i64, n.site()), n.shape(line));
  const Tensor hits = equal(n.arg(unsqueeze(n.arg(labels), axis)), numbers);
  const Tensor off = reshape(slice_along(n.arg(2), 0, 0, 1), Shape{}), on = reshape(slice_along(n.arg(2), 0, 1, 2), Shape{});
  return {where(hits, on, off)};
}

// The number of elements that a run will find, as the type of the result states it. A run that finds another number fails.
std::int64_t stated_count(const NodeCall& n, std::size_t operand, std::int64_t axis, std::int64_t rank) {
  const std::int64_t count = n.stated_size(0, static_cast<std::size_t>(axis), static_cast<std::size_t>(rank));
  n.require(count >= 0, "the size of the result depends on operand " + std::to_string(operand) +
                            ", so it is known only when the model runs; the model can state it in the type of the result");
  return count;
}

Tensors places_of_nonzero(NodeCall& n) {
  const Tensor found = n.is_known(0) ? nonzero(n.arg(0)) : nonzero(n.arg(0), stated_count(n, 0, 1, 2));
  return {transpose_last(n.arg(found))};
}

// The places along an axis at which a known condition holds.
Tensor known_places(const NodeCall& n) {
  const Integers condition = n.integers(1);
  Integers places;
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) places.push_back(static_cast<std::int64_t>(i));
  return known_integers(places);
}

// The slices along the axis, or the elements, at which the condition holds.
Tensors compress(NodeCall& n) {
  const bool flat = !n.has("axis");
  const Tensor x = flat && n[0].rank() != 1 ? reshape(n.arg(0), {n[0].numel()}) : n[0];
  const std::int64_t axis = flat ? 0 : n.axis(n.integer("axis"), x.rank());
  const Tensor& condition = n[1];
  n.require(condition.rank() == 1 && condition.numel() <= x.size(static_cast<int>(axis)),
            "the condition must have one dimension and not be longer than the axis");
  if (n.is_known(1)) return {index_select(n.arg(x), axis, known_places(n))};
  const std::int64_t count = stated_count(n, 1, axis, x.rank());
  if (x.rank() == 1 && condition.numel() == x.numel()) return {masked_select(n.arg(x), condition, count)};
  return {index_select(n.arg(x), axis, reshape(n.arg(nonzero(n.arg(1), count)), {count}))};
}

// i64 [batch, time]: the place of each step in its reversed sequence. Steps behind the end of a sequence stay.
Tensor reversed_places(const NodeCall& n, std::int64_t steps) {
  const Tensor step = reshape(n.arg(arange(std::int64_t{0}, steps, 1, DType::i64, n.site())), {1, steps});
  const Tensor counts = n[1].dtype() == DType::i64 ? n[1] : cast(n.arg(1), DType::i64);
  const Tensor lengths = unsqueeze(n.arg(counts), 1), last = sub(n.arg(lengths), 1);
  return where(n.arg(less(n.arg(step), lengths)), sub(n.arg(last), step), step);
}

Tensors reverse_sequences(NodeCall& n) {
  const std::int64_t time = n.integer("time_axis", 0), batch = n.integer("batch_axis", 1);
  n.require(n[0].rank() >= 2 && (time == 0 || time == 1) && batch == 1 - time, "the axes of time and batch must be 0 and 1");
  const std::int64_t steps = n[0].size(static_cast<int>(time));
  n.require(n[1].rank() == 1 && n[1].size(0) == n[0].size(static_cast<int>(batch)),
            "there must be one length for each sequence");
  if (n.is_known(1)) {
    const Integers lengths = n.integers(1);
    for (const std::int64_t length : lengths) n.require(length >= 0 && length <= steps, "a length is longer than the axis");
    if (std::count(lengths.begin(), lengths.end(), steps) == static_cast<std::ptrdiff_t>(lengths.size()))
      return {flip(n.arg(0), {time})};
  }
  const auto turned = [&](const Tensor& x) { return batch == 0 ? x : swapaxes(n.arg(x), 0, 1); };
  return {turned(gather_nd(n.arg(turned(n[0])), unsqueeze(n.arg(reversed_places(n, steps)), 2), 1))};
}

}  // namespace

std::vector<OnnxOp> index_ops() {
  return {
      {"Gather", 1, "axis", gather_slices},
      {"GatherElements", 11, "axis", gather_elements},
      {"GatherND", 11, "batch_dims", gather_tuples},
      {"Scatter", 9, "axis", scatter_elements, 11},
      {"ScatterElements", 11, "axis reduction", scatter_elements},
      {"ScatterND", 11, "reduction", scatter_tuples},
      {"OneHot", 9, "axis", one_hot_values, 28},
      {"NonZero", 9, "", places_of_nonzero},
      {"Compress", 9, "axis", compress, 28},
      {"ReverseSequence", 10, "batch_axis time_axis", reverse_sequences},
  };
}

}  // namespace tapedeck::onnx
