// Inference and gradients of ops that move elements, and functions for authors that are made of views: split, tile, stack,
// squeeze, meshgrid, pixel_shuffle and others.
//
//       tile(x [2], {3})    ->    reshape [1,2], broadcast_to [3,2], reshape [6]
#include <tapedeck/engine/ops/rearrange.h>

#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

// ---- inference ----

void require_ascending(const Infer& f, const Ints& axes) {
  const Type& x = f.inputs[0];
  for (int i = 0; i < axes.size; ++i) {
    if (!valid_axis(axes[i], x.shape.rank)) f.fail(fmt::format("axis {} is outside {}", axes[i], to_string(x)));
    if (i > 0 && axes[i] <= axes[i - 1]) f.fail("axes must ascend and not repeat");
  }
}

void infer_roll(Infer& f) {
  const auto& a = f.attributes<RollAttrs>();
  require_ascending(f, a.axes);
  if (a.shifts.size != a.axes.size) f.fail(fmt::format("{} shifts for {} axes", a.shifts.size, a.axes.size));
  for (int i = 0; i < a.axes.size; ++i) {
    const std::int64_t size = f.inputs[0].shape.sizes[a.axes[i]];
    if (a.shifts[i] < 0 || a.shifts[i] >= std::max<std::int64_t>(size, 1))
      f.fail(fmt::format("shift {} is outside dimension {} of {}", a.shifts[i], a.axes[i], to_string(f.inputs[0])));
  }
  infer_same(f);
}

void infer_triangle(Infer& f) {
  if (f.inputs[0].shape.rank < 2) f.fail(fmt::format("needs at least two dimensions, got {}", to_string(f.inputs[0])));
  infer_same(f);
}

void require_padding(const Infer& f, const Ints& before, const Ints& after) {
  const Type& x = f.inputs[0];
  for (const Ints* list : {&before, &after}) {
    if (list->size != x.shape.rank)
      f.fail(fmt::format("{} lists {} numbers for {}", list == &before ? "before" : "after", list->size, to_string(x)));
    for (std::int64_t v : *list)
      if (v < 0) f.fail("padding must not be negative");
  }
}

void infer_padded(Infer& f, const Ints& before, const Ints& after) {
  require_padding(f, before, after);
  Type out = f.inputs[0];
  for (int i = 0; i < out.shape.rank; ++i) out.shape[i] = infer_sum(f, out.shape[i], infer_sum(f, before[i], after[i]));
  f.outputs.assign(1, out);
}

// Checks the mode, and that the paddings are no wider than the mode allows for this shape.
void require_mode(const Infer& f, const PadModeAttrs& a, const Shape& unpadded) {
  const auto mode = a.mode.view();
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    f.fail(fmt::format("mode must be reflect, replicate or circular, not '{}'", mode));
  for (int i = 0; i < unpadded.rank; ++i) {
    const std::int64_t size = unpadded[i], widest = std::max(a.before[i], a.after[i]);
    const std::int64_t most = mode == "reflect" ? size - 1 : mode == "circular" || size == 0 ? size : widest;
    if (widest > 0 && widest > most) f.fail(fmt::format("{} elements give no {} padding of {}", size, mode, widest));
  }
}

void infer_pad_mode(Infer& f) {
  const auto& a = f.attributes<PadModeAttrs>();
  const Shape unpadded = f.inputs[0].shape;
  infer_padded(f, a.before, a.after);
  require_mode(f, a, unpadded);
}

void infer_pad_mode_grad(Infer& f) {
  const auto& a = f.attributes<PadModeAttrs>();
  require_padding(f, a.before, a.after);
  infer_require_float(f, f.inputs[0]);
  Type out = f.inputs[0];
  for (int i = 0; i < out.shape.rank; ++i) {
    out.shape[i] -= infer_sum(f, a.before[i], a.after[i]);
    if (out.shape[i] < 0) f.fail(fmt::format("{} is smaller than its padding in dimension {}", to_string(f.inputs[0]), i));
  }
  require_mode(f, a, out.shape);
  f.outputs.assign(1, out);
}

// ---- help for the functions ----

// The axis counted from the front. `slots` is the rank, or one more if a new axis may be added at the end.
int checked_axis(const char* name, const Arg& x, std::int64_t axis, int slots) {
  const std::int64_t from_front = axis < 0 ? axis + slots : axis;
  if (!valid_axis(from_front, slots))
    throw TypeError(error_text(name, fmt::format("axis {} is outside {}", axis, to_string(x.tensor().type())), x.site()));
  return static_cast<int>(from_front);
}

int checked_axis(const char* name, const Arg& x, std::int64_t axis) {
  return checked_axis(name, x, axis, checked_shape(name, x).rank);
}

// The product of the sizes before `axis`, the size of `axis`, and the product of the sizes after it.
std::array<std::int64_t, 3> around(const Shape& shape, int axis) {
  std::array<std::int64_t, 3> sizes = {1, shape[axis], 1};
  for (int i = 0; i < axis; ++i) sizes[0] *= shape[i];
  for (int i = axis + 1; i < shape.rank; ++i) sizes[2] *= shape[i];
  return sizes;
}

// The shape with dimension `axis` replaced by the dimensions `with`.
Shape replaced(const Shape& shape, int axis, std::initializer_list<std::int64_t> with) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, with);
  return Shape(std::span<const std::int64_t>(sizes));
}

// Makes an axis of n * repeats elements of an axis of n: repeats all n elements as a whole, or with `interleave` each element
// in a row.
Tensor repeat_axis(const Arg& x, int axis, std::int64_t repeats, bool interleave) {
  const Shape& shape = x.tensor().shape();
  if (repeats == 1) return x.tensor();
  const auto [outer, n, inner] = around(shape, axis);
  const Shape apart = interleave ? Shape{outer, n, 1, inner} : Shape{outer, 1, n, inner};
  const Shape repeated = interleave ? Shape{outer, n, repeats, inner} : Shape{outer, repeats, n, inner};
  const Tensor all = broadcast_to(at(reshape(x, apart), x.site()), repeated);
  return reshape(at(all, x.site()), replaced(shape, axis, {n * repeats}));
}

void check_repeats(const char* name, const Arg& x, std::int64_t repeats) {
  if (repeats < 0 || repeats > kMaxTypeBytes) refuse(name, x, fmt::format("cannot repeat {} times", repeats));
}

}  // namespace

Tensor flip(const Arg& x, const Ints& axes) {
  FlipAttrs attrs{axes};
  for (int i = 0; i < axes.size; ++i) attrs.axes.items[i] = checked_axis("flip", x, axes[i]);
  std::sort(attrs.axes.items, attrs.axes.items + attrs.axes.size);
  return apply(ops::flip, {&x.tensor()}, &attrs, x.site());
}

Tensor roll(const Arg& x, const Ints& shifts, const Ints& axes) {
  const Shape& shape = checked_shape("roll", x);
  if (axes.size == 0) {
    if (shifts.size != 1) refuse("roll", x, fmt::format("{} shifts without axes", shifts.size));
    return reshape(at(roll(at(flatten(x), x.site()), shifts, {0}), x.site()), shape);
  }
  if (shifts.size != axes.size) refuse("roll", x, fmt::format("{} shifts for {} axes", shifts.size, axes.size));
  std::int64_t total[kMaxRank] = {};
  for (int i = 0; i < axes.size; ++i) {
    const int axis = checked_axis("roll", x, axes[i]);
    const std::int64_t size = std::max<std::int64_t>(shape[axis], 1);
    total[axis] = ((total[axis] + shifts[i] % size) % size + size) % size;
  }
  RollAttrs attrs;
  for (int d = 0; d < shape.rank; ++d)
    if (total[d] != 0) attrs.axes.push_back(d), attrs.shifts.push_back(total[d]);
  return apply(ops::roll, {&x.tensor()}, &attrs, x.site());
}

Tensor tril(const Arg& x, std::int64_t diagonal) {
  const TriangleAttrs attrs{diagonal};
  return apply(ops::tril, {&x.tensor()}, &attrs, x.site());
}

Tensor triu(const Arg& x, std::int64_t diagonal) {
  const TriangleAttrs attrs{diagonal};
  return apply(ops::triu, {&x.tensor()}, &attrs, x.site());
}

Tensor pad(const Arg& x, const Ints& before, const Ints& after, std::string_view mode, double value) {
  if (mode == "constant" && value == 0) return pad(x, before, after);
  if (mode == "constant") {
    const PadConstantAttrs attrs{before, after, value};
    return apply(ops::pad_constant, {&x.tensor()}, &attrs, x.site());
  }
  const PadModeAttrs attrs{before, after, mode};
  return apply(ops::pad_mode, {&x.tensor()}, &attrs, x.site());
}

Tensor tile(const Arg& x, const Ints& repeats) {
  const Shape& shape = checked_shape("tile", x);
  const int rank = std::max(shape.rank, repeats.size);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank - shape.rank), 1);
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Tensor tiled = reshape(x, Shape(std::span<const std::int64_t>(sizes)));
  for (int i = repeats.size - 1; i >= 0; --i) {  // the last dimension first, so that the first copies are small
    check_repeats("tile", x, repeats[i]);
    tiled = repeat_axis(at(tiled, x.site()), rank - repeats.size + i, repeats[i], false);
  }
  return tiled;
}

Tensor repeat_interleave(const Arg& x, std::int64_t repeats, std::int64_t axis) {
  const int d = checked_axis("repeat_interleave", x, axis);
  check_repeats("repeat_interleave", x, repeats);
  return repeat_axis(x, d, repeats, true);
}

std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  const int d = checked_axis("split", x, axis);
  const std::int64_t size = x.tensor().shape()[d];
  std::int64_t start = 0;
  std::vector<Tensor> parts;
  for (std::int64_t part : sizes) {
    if (part < 0 || part > size - start) break;
    parts.push_back(slice(x, d, start, start + part));
    start += part;
  }
  if (parts.size() != sizes.size() || start != size)
    refuse("split", x, fmt::format("the parts do not make up axis {} of {}", d, to_string(x.tensor().type())));
  return parts;
}

std::vector<Tensor> split(const Arg& x, std::int64_t size, std::int64_t axis) {
  const std::int64_t whole =
      x.tensor().defined() ? x.tensor().shape()[checked_axis("split", x, axis)] : checked_axis("split", x, axis);
  if (size < 1) refuse("split", x, fmt::format("parts cannot have the size {}", size));
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = whole; left > 0; left -= size) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, axis);
}

std::vector<Tensor> chunk(const Arg& x, std::int64_t chunks, std::int64_t axis) {
  const int d = checked_axis("chunk", x, axis);
  if (chunks < 1) refuse("chunk", x, fmt::format("cannot make {} chunks", chunks));
  const std::int64_t size = x.tensor().shape()[d];
  return split(x, std::max<std::int64_t>(1, size / chunks + (size % chunks != 0)), d);
}

std::vector<Tensor> unbind(const Arg& x, std::int64_t axis) {
  const int d = checked_axis("unbind", x, axis);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.tensor().shape()[d]; ++i) parts.push_back(select(x, d, i));
  return parts;
}

Tensor narrow(const Arg& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  const int d = checked_axis("narrow", x, axis);
  const std::int64_t size = x.tensor().shape()[d], first = start < 0 ? start + size : start;
  if (first < 0 || first > size || length < 0 || length > size - first)
    refuse("narrow", x,
           fmt::format("{} elements from {} on are outside axis {} of {}", length, start, d, to_string(x.tensor().type())));
  return slice(x, d, first, first + length);
}

Tensor select(const Arg& x, std::int64_t axis, std::int64_t index) {
  const int d = checked_axis("select", x, axis);
  const Shape& shape = x.tensor().shape();
  const std::int64_t at_index = index < 0 ? index + shape[d] : index;
  if (!(at_index >= 0 && at_index < shape[d]))
    refuse("select", x, fmt::format("index {} is outside axis {} of {}", index, d, to_string(x.tensor().type())));
  const Shape left = replaced(shape, d, {});
  return reshape(at(slice(x, d, at_index, at_index + 1), x.site()), left);
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis, Site site) {
  if (tensors.empty() || !tensors[0].defined()) throw TypeError(error_text("stack", "needs at least one tensor", site));
  const int d = checked_axis("stack", at(tensors[0], site), axis, tensors[0].rank() + 1);
  std::vector<Tensor> layers;
  for (const Tensor& t : tensors) {
    if (!t.defined()) throw TypeError(error_text("stack", "an operand is undefined", site));
    if (t.type() != tensors[0].type())
      throw TypeError(error_text(
          "stack", fmt::format("operands differ in type: {} and {}", to_string(tensors[0].type()), to_string(t.type())), site));
    layers.push_back(unsqueeze(at(t, site), d));
  }
  return concat(layers, d, site);
}

Tensor squeeze(const Arg& x) {
  Shape kept;
  for (std::int64_t size : checked_shape("squeeze", x))
    if (size != 1) kept.sizes[kept.rank++] = size;
  return reshape(x, kept);
}

Tensor squeeze(const Arg& x, std::int64_t axis) {
  const int d = checked_axis("squeeze", x, axis);
  const Shape& shape = x.tensor().shape();
  return shape[d] == 1 ? reshape(x, replaced(shape, d, {})) : x.tensor();
}

Tensor unsqueeze(const Arg& x, std::int64_t axis) {
  const Shape& shape = checked_shape("unsqueeze", x);
  const int d = checked_axis("unsqueeze", x, axis, shape.rank + 1);
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.insert(sizes.begin() + d, 1);
  if (shape.rank == kMaxRank)
    refuse("unsqueeze", x, fmt::format("{} has no room for another dimension", to_string(x.tensor().type())));
  return reshape(x, Shape(std::span<const std::int64_t>(sizes)));
}

Tensor flatten(const Arg& x, std::int64_t first, std::int64_t last) {
  const Shape& shape = checked_shape("flatten", x);
  if (shape.rank == 0) return reshape(x, Shape{1});
  const int from = checked_axis("flatten", x, first), to = checked_axis("flatten", x, last);
  if (from > to) refuse("flatten", x, fmt::format("axis {} comes after axis {}", first, last));
  Shape flat;
  for (int d = 0; d < shape.rank; ++d) {
    if (d <= from || d > to)
      flat.sizes[flat.rank++] = shape[d];
    else
      flat.sizes[flat.rank - 1] *= shape[d];
  }
  return reshape(x, flat);
}

Tensor expand(const Arg& x, const Ints& sizes) {
  const Shape& shape = checked_shape("expand", x);
  std::vector<std::int64_t> wanted(sizes.begin(), sizes.end());
  const int lead = sizes.size - shape.rank;
  for (int d = 0; d < sizes.size; ++d)
    if (sizes[d] == -1) {
      if (d < lead) refuse("expand", x, fmt::format("dimension {} is new and has no size to keep", d));
      if (d >= lead && d - lead < shape.rank) wanted[d] = shape[d - lead];
    }
  return broadcast_to(x, Shape(std::span<const std::int64_t>(wanted)));
}

Tensor permute(const Arg& x, const Ints& axes) { return transpose(x, axes); }

Tensor movedim(const Arg& x, std::int64_t from, std::int64_t to) {
  const int source = checked_axis("movedim", x, from), target = checked_axis("movedim", x, to);
  std::vector<std::int64_t> order;
  for (int d = 0; d < x.tensor().rank(); ++d)
    if (d != source) order.push_back(d);
  order.insert(order.begin() + target, source);
  Ints axes;
  for (std::int64_t d : order) axes.push_back(d);
  return transpose(x, axes);
}

Tensor swapaxes(const Arg& x, std::int64_t axis1, std::int64_t axis2) {
  const int a = checked_axis("swapaxes", x, axis1), b = checked_axis("swapaxes", x, axis2);
  Ints axes;
  for (int d = 0; d < x.tensor().rank(); ++d) axes.push_back(d == a ? b : d == b ? a : d);
  return transpose(x, axes);
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, Site site) {
  Shape shape;
  for (const Tensor& t : tensors) {
    if (!t.defined()) throw TypeError(error_text("broadcast_tensors", "an operand is undefined", site));
    Shape both;
    if (!broadcast_shapes(shape, t.shape(), &both))
      throw TypeError(error_text("broadcast_tensors",
                                 fmt::format("{} does not broadcast with {}", to_string(t.shape()), to_string(shape)), site));
    shape = both;
  }
  std::vector<Tensor> expanded;
  for (const Tensor& t : tensors) expanded.push_back(broadcast_to(at(t, site), shape));
  return expanded;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing, Site site) {
  if (indexing != "ij" && indexing != "xy")
    throw TypeError(error_text("meshgrid", fmt::format("indexing must be ij or xy, not '{}'", indexing), site));
  const std::size_t n = axes.size();
  std::vector<Tensor> columns;
  for (std::size_t k = 0; k < n; ++k) {
    if (!axes[k].defined() || axes[k].rank() != 1) throw TypeError(error_text("meshgrid", "axes must be vectors", site));
    const std::size_t place = indexing == "xy" && n > 1 && k < 2 ? 1 - k : k;
    std::vector<std::int64_t> sizes(n, 1);
    sizes[place] = axes[k].numel();
    columns.push_back(reshape(at(axes[k], site), Shape(std::span<const std::int64_t>(sizes))));
  }
  return broadcast_tensors(columns, site);
}

Tensor pixel_shuffle(const Arg& x, std::int64_t factor) {
  const Shape& shape = checked_shape("pixel_shuffle", x);
  const int c = shape.rank - 3;
  if (c < 0) refuse("pixel_shuffle", x, fmt::format("needs at least three dimensions, got {}", to_string(x.tensor().type())));
  if (factor < 1 || factor > (1 << 20) || shape[c] % (factor * factor) != 0)
    refuse("pixel_shuffle", x,
           fmt::format("the channels of {} do not come in squares of {}", to_string(x.tensor().type()), factor));
  std::int64_t batch = 1;
  for (int d = 0; d < c; ++d) batch *= shape[d];
  const std::int64_t channels = shape[c] / (factor * factor), h = shape[c + 1], w = shape[c + 2];
  const Tensor apart = reshape(x, Shape{batch * channels, factor, factor, h, w});
  const Tensor turned = transpose(at(apart, x.site()), {0, 3, 1, 4, 2});
  Shape out = shape;
  out[c] = channels, out[c + 1] = h * factor, out[c + 2] = w * factor;
  return reshape(at(turned, x.site()), out);
}

Tensor pixel_unshuffle(const Arg& x, std::int64_t factor) {
  const Shape& shape = checked_shape("pixel_unshuffle", x);
  const int c = shape.rank - 3;
  if (c < 0) refuse("pixel_unshuffle", x, fmt::format("needs at least three dimensions, got {}", to_string(x.tensor().type())));
  if (factor < 1 || factor > (1 << 20) || shape[c + 1] % factor != 0 || shape[c + 2] % factor != 0)
    refuse("pixel_unshuffle", x, fmt::format("{} does not come in squares of {}", to_string(x.tensor().type()), factor));
  std::int64_t planes = 1;
  for (int d = 0; d <= c; ++d) planes *= shape[d];
  const std::int64_t h = shape[c + 1] / factor, w = shape[c + 2] / factor;
  const Tensor apart = reshape(x, Shape{planes, h, factor, w, factor});
  const Tensor turned = transpose(at(apart, x.site()), {0, 2, 4, 1, 3});
  Shape out = shape;
  out[c] = shape[c] * factor * factor, out[c + 1] = h, out[c + 2] = w;
  return reshape(at(turned, x.site()), out);
}

Tensor channel_shuffle(const Arg& x, std::int64_t groups) {
  const Shape& shape = checked_shape("channel_shuffle", x);
  if (shape.rank < 2)
    refuse("channel_shuffle", x, fmt::format("needs at least two dimensions, got {}", to_string(x.tensor().type())));
  if (groups < 1 || shape[1] % groups != 0)
    refuse("channel_shuffle", x,
           fmt::format("the channels of {} do not make {} equal groups", to_string(x.tensor().type()), groups));
  const auto [batch, channels, inner] = around(shape, 1);
  const Tensor apart = reshape(x, Shape{batch, groups, channels / groups, inner});
  return reshape(at(transpose(at(apart, x.site()), {0, 2, 1, 3}), x.site()), shape);
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/rearrange.h>
