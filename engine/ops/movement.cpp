// Inference, view rules and gradients of the ops that move data. A view rule computes the offset and strides of the result
// from the strides of the operand:
//
//       x: f32[3,4], strides 4 1      transpose(x) {axes=[1,0]}    ->  offset 0, strides 1 4
//                                     slice(x) {starts=[1,0], ...} ->  offset 4, strides 4 1
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

Shape shape_of(const Infer& f, const Ints& sizes) {
  if (checked_bytes(f.inputs[0].dtype, {sizes.items, static_cast<std::size_t>(sizes.size)}) < 0) f.fail("bad shape");
  return Shape(std::span<const std::int64_t>(sizes.items, static_cast<std::size_t>(sizes.size)));
}

void require_list(const Infer& f, const Ints& list, const char* name) {
  if (list.size != f.inputs[0].shape.rank)
    f.fail(fmt::format("{} lists {} numbers for {}", name, list.size, to_string(f.inputs[0])));
}

// ---- reshape ----

void infer_reshape(Infer& f) {
  const Shape shape = shape_of(f, f.attributes<ShapeAttrs>().shape);
  if (shape.numel() != f.inputs[0].numel())
    f.fail(fmt::format("{} has {} elements, {} has {}", to_string(f.inputs[0]), f.inputs[0].numel(), to_string(shape),
                       shape.numel()));
  f.outputs.assign(1, Type{f.inputs[0].dtype, shape});
}

// Old dimensions that follow each other without gaps form a group. A group can be cut into new dimensions in any way. The
// reshape is a view if every group has exactly the elements of a run of new dimensions.
bool view_reshape(const Type& in, const std::int64_t* strides, const void*, const Type& out, std::int64_t* offset,
                  std::int64_t* out_strides) {
  *offset = 0;
  dense_strides(out.shape, out_strides);
  if (in.numel() == 0) return true;
  int o = out.shape.rank - 1;
  for (int i = in.shape.rank - 1; i >= 0;) {
    const std::int64_t base = strides[i];
    std::int64_t group = in.shape[i--];
    if (group == 1) continue;
    while (i >= 0 && (in.shape[i] == 1 || strides[i] == group * base)) group *= in.shape[i--];
    std::int64_t covered = 1;
    while (o >= 0 && (covered < group || out.shape[o] == 1)) {
      out_strides[o] = covered * base;
      covered *= out.shape[o--];
    }
    if (covered != group) return false;
  }
  return true;
}

Tensor unview_reshape(const Tensor& base, const Tensor& piece, const void*, Site site) {
  return reshape(Arg(piece, site.file, site.line), base.shape());
}

// ---- transpose ----

void infer_transpose(Infer& f) {
  const auto& a = f.attributes<PermuteAttrs>();
  require_list(f, a.axes, "axes");
  const Type& x = f.inputs[0];
  Type out = x;
  bool seen[kMaxRank] = {};
  for (int i = 0; i < a.axes.size; ++i) {
    if (!valid_axis(a.axes[i], x.shape.rank) || std::exchange(seen[a.axes[i]], true)) f.fail("axes must be a permutation");
    out.shape[i] = x.shape[static_cast<int>(a.axes[i])];
  }
  f.outputs.assign(1, out);
}

Ints inverse_order(const Ints& axes) {
  Ints inverse = axes;
  for (int i = 0; i < axes.size; ++i) inverse.items[axes[i]] = i;
  return inverse;
}

bool view_transpose(const Type& in, const std::int64_t* strides, const void* attrs, const Type&, std::int64_t* offset,
                    std::int64_t* out_strides) {
  *offset = 0;
  const auto& a = *static_cast<const PermuteAttrs*>(attrs);
  for (int i = 0; i < in.shape.rank; ++i) out_strides[i] = strides[a.axes[i]];
  return true;
}

Tensor unview_transpose(const Tensor&, const Tensor& piece, const void* attrs, Site site) {
  return transpose(Arg(piece, site.file, site.line), inverse_order(static_cast<const PermuteAttrs*>(attrs)->axes));
}

// ---- slice ----

std::int64_t step_of(const SliceAttrs& a, int dim) { return a.steps.size ? a.steps[dim] : 1; }

void infer_slice(Infer& f) {
  const auto& a = f.attributes<SliceAttrs>();
  require_list(f, a.starts, "starts");
  require_list(f, a.stops, "stops");
  if (a.steps.size) require_list(f, a.steps, "steps");
  Type out = f.inputs[0];
  for (int i = 0; i < out.shape.rank; ++i) {
    const std::int64_t step = step_of(a, i);
    if (a.starts[i] < 0 || a.stops[i] < a.starts[i] || a.stops[i] > out.shape[i])
      f.fail(fmt::format("{}:{} is outside dimension {} of {}", a.starts[i], a.stops[i], i, to_string(f.inputs[0])));
    if (step < 1) f.fail(fmt::format("step {} in dimension {} is not positive", step, i));
    const std::int64_t span = a.stops[i] - a.starts[i];
    out.shape[i] = span == 0 ? 0 : (span - 1) / step + 1;
  }
  f.outputs.assign(1, out);
}

bool view_slice(const Type& in, const std::int64_t* strides, const void* attrs, const Type& out, std::int64_t* offset,
                std::int64_t* out_strides) {
  const auto& a = *static_cast<const SliceAttrs*>(attrs);
  *offset = 0;
  for (int i = 0; i < in.shape.rank; ++i) {
    *offset += a.starts[i] * strides[i];
    out_strides[i] = out.shape[i] > 1 ? strides[i] * step_of(a, i) : strides[i];  // a step that is never taken may be huge
  }
  return true;
}

Tensor unview_slice(const Tensor& base, const Tensor& piece, const void* attrs, Site site) {
  return apply(ops::slice_assign, {&base, &piece}, attrs, site);
}

// Zeros of this type: one element, broadcast.
Tensor zeros_for(const Type& type, Site site) {
  const Tensor zero = full({}, 0, type.dtype, site);
  return broadcast_to(Arg(zero, site.file, site.line), type.shape);
}

void vjp_slice(Vjp& b) { b.dx_window(0, b.dy(), b.attributes<SliceAttrs>()); }

// ---- diagonal ----

void infer_diagonal(Infer& f) {
  const auto& a = f.attributes<DiagonalAttrs>();
  const Type& x = f.inputs[0];
  for (std::int64_t axis : {a.axis1, a.axis2})
    if (!valid_axis(axis, x.shape.rank)) f.fail(fmt::format("axis {} is outside {}", axis, to_string(x)));
  if (a.axis1 == a.axis2) f.fail("the two axes are the same");
  Type out{x.dtype, {}};
  for (int i = 0; i < x.shape.rank; ++i)
    if (i != a.axis1 && i != a.axis2) out.shape.sizes[out.shape.rank++] = x.shape[i];
  out.shape.sizes[out.shape.rank++] = diagonal_range(x.shape.sizes[a.axis1], x.shape.sizes[a.axis2], a.offset).length;
  f.outputs.assign(1, out);
}

bool view_diagonal(const Type& in, const std::int64_t* strides, const void* attrs, const Type& out, std::int64_t* offset,
                   std::int64_t* out_strides) {
  const auto& a = *static_cast<const DiagonalAttrs*>(attrs);
  const DiagonalRange range = diagonal_range(in.shape.sizes[a.axis1], in.shape.sizes[a.axis2], a.offset);
  *offset = range.row * strides[a.axis1] + range.column * strides[a.axis2];
  int o = 0;
  for (int i = 0; i < in.shape.rank; ++i)
    if (i != a.axis1 && i != a.axis2) out_strides[o++] = strides[i];
  out_strides[out.shape.rank - 1] = strides[a.axis1] + strides[a.axis2];
  return true;
}

Tensor unview_diagonal(const Tensor& base, const Tensor& piece, const void* attrs, Site site) {
  return apply(ops::diagonal_assign, {&base, &piece}, attrs, site);
}

// ---- slice_assign, diagonal_assign ----

// Call this after the rule of the view has set output 0 to the view's type. Checks that the piece has that type, and sets
// output 0 to the type of the base.
void infer_assign(Infer& f) {
  if (f.inputs[1] != f.outputs[0])
    f.fail(fmt::format("the piece is {}, the window {}", to_string(f.inputs[1]), to_string(f.outputs[0])));
  f.outputs.assign(1, f.inputs[0]);
}

void vjp_assign(Vjp& b, const Op& window) {
  const Op& assign = &window == &ops::slice ? ops::slice_assign : ops::diagonal_assign;
  if (b.needs(0)) {
    const Tensor nothing = zeros_for(b.x(1).type(), b.site());
    b.dx(0, apply(assign, {&b.dy(), &nothing}, b.attrs, b.site()));
  }
  if (b.needs(1)) b.dx(1, apply(window, {&b.dy()}, b.attrs, b.site()));
}

// ---- broadcast_to ----

void infer_broadcast_to(Infer& f) {
  const Shape shape = shape_of(f, f.attributes<ShapeAttrs>().shape);
  Shape both;
  if (!broadcast_shapes(f.inputs[0].shape, shape, &both) || both != shape)
    f.fail(fmt::format("{} does not broadcast to {}", to_string(f.inputs[0]), to_string(shape)));
  f.outputs.assign(1, Type{f.inputs[0].dtype, shape});
}

bool view_broadcast_to(const Type& in, const std::int64_t* strides, const void*, const Type& out, std::int64_t* offset,
                       std::int64_t* out_strides) {
  *offset = 0;
  const int lead = out.shape.rank - in.shape.rank;
  for (int i = 0; i < out.shape.rank; ++i) out_strides[i] = i < lead || in.shape[i - lead] == 1 ? 0 : strides[i - lead];
  return true;
}

bool view_identity(const Type& in, const std::int64_t* strides, const void*, const Type&, std::int64_t* offset,
                   std::int64_t* out_strides) {
  *offset = 0;
  std::copy_n(strides, in.shape.rank, out_strides);
  return true;
}

// ---- pad, concat ----

void infer_pad(Infer& f) {
  const auto& a = f.attributes<PadAttrs>();
  require_list(f, a.before, "before");
  require_list(f, a.after, "after");
  Type out = f.inputs[0];
  for (int i = 0; i < out.shape.rank; ++i) {
    if (a.before[i] < 0 || a.after[i] < 0) f.fail("padding must not be negative");
    out.shape[i] = infer_sum(f, out.shape[i], infer_sum(f, a.before[i], a.after[i]));
  }
  f.outputs.assign(1, out);
}

void infer_concat(Infer& f) {
  const std::int64_t axis = f.attributes<AxisAttrs>().axis;
  Type out = f.inputs[0];
  if (!valid_axis(axis, out.shape.rank)) f.fail(fmt::format("axis {} is outside {}", axis, to_string(out)));
  const int d = static_cast<int>(axis);
  for (std::size_t i = 1; i < f.inputs.size(); ++i) {
    Type t = f.inputs[i];
    const std::int64_t size = t.shape.rank == out.shape.rank ? t.shape[d] : -1;
    if (size >= 0) t.shape[d] = out.shape[d];
    if (size < 0 || t != out)
      f.fail(fmt::format("{} does not continue {} along axis {}", to_string(f.inputs[i]), to_string(f.inputs[0]), axis));
    out.shape[d] = infer_sum(f, out.shape[d], size);
  }
  f.outputs.assign(1, out);
}

void parts_of_concat(std::span<const Type> inputs, const void* attrs, const std::int64_t* result_strides,
                     std::int64_t* offsets) {
  const auto axis = static_cast<int>(static_cast<const AxisAttrs*>(attrs)->axis);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    offsets[i] = offset;
    offset += inputs[i].shape[axis] * result_strides[axis];
  }
}

void part_of_pad(std::span<const Type> inputs, const void* attrs, const std::int64_t* result_strides, std::int64_t* offsets) {
  const auto& a = *static_cast<const PadAttrs*>(attrs);
  offsets[0] = 0;
  for (int d = 0; d < inputs[0].shape.rank; ++d) offsets[0] += a.before[d] * result_strides[d];
}

// Limits the bounds as Python does, and leaves out the steps if all are 1. Lists of a wrong length are passed on; inference
// refuses them.
SliceAttrs normalised(const Shape& shape, const Ints& starts, const Ints& stops, const Ints& steps) {
  SliceAttrs attrs{starts, stops, {}};
  auto clamp = [](std::int64_t v, std::int64_t size) { return std::clamp<std::int64_t>(v < 0 ? v + size : v, 0, size); };
  for (int i = 0; i < shape.rank && i < starts.size && i < stops.size; ++i) {
    attrs.starts.items[i] = clamp(starts[i], shape[i]);
    attrs.stops.items[i] = std::max(attrs.starts[i], clamp(stops[i], shape[i]));
  }
  if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; })) attrs.steps = steps;
  return attrs;
}

DiagonalAttrs diagonal_attrs(const Shape& shape, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  return {offset, axis1 < 0 ? axis1 + shape.rank : axis1, axis2 < 0 ? axis2 + shape.rank : axis2};
}

}  // namespace

Tensor reshape(const Arg& x, const Shape& shape) {
  ShapeAttrs attrs;
  for (std::int64_t s : shape) attrs.shape.push_back(s);
  return apply(ops::reshape, {&x.tensor()}, &attrs, x.site());
}

Tensor reshape(const Arg& x, std::initializer_list<std::int64_t> sizes) {
  checked_shape("reshape", x);
  std::int64_t known = 1;
  int open = -1, at = 0;
  for (std::int64_t s : sizes) {
    if (s == -1) {
      if (open >= 0) throw TypeError(error_text("reshape", "only one size may be -1", x.site()));
      open = at;
    } else {
      known *= s;
    }
    ++at;
  }
  std::vector<std::int64_t> all(sizes);
  if (open >= 0) {
    if (known == 0 || x.tensor().numel() % known != 0)
      throw TypeError(error_text("reshape",
                                 fmt::format("no size for -1: {} has {} elements, the others make {}",
                                             to_string(x.tensor().type()), x.tensor().numel(), known),
                                 x.site()));
    all[open] = x.tensor().numel() / known;
  }
  return reshape(x, Shape(std::span<const std::int64_t>(all)));
}

Tensor transpose(const Arg& x, const Ints& axes) {
  PermuteAttrs attrs{axes};
  const int rank = checked_shape("transpose", x).rank;
  for (int i = 0; i < attrs.axes.size; ++i)
    if (attrs.axes[i] < 0) attrs.axes.items[i] += rank;
  return apply(ops::transpose, {&x.tensor()}, &attrs, x.site());
}

Tensor transpose_last(const Arg& x) {
  const int rank = checked_shape("transpose", x).rank;
  if (rank < 2) throw TypeError(error_text("transpose", "needs at least two dimensions", x.site()));
  PermuteAttrs attrs;
  for (int i = 0; i < rank; ++i) attrs.axes.push_back(i);
  std::swap(attrs.axes.items[rank - 2], attrs.axes.items[rank - 1]);
  return apply(ops::transpose, {&x.tensor()}, &attrs, x.site());
}

Tensor slice(const Arg& x, const Ints& starts, const Ints& stops, const Ints& steps) {
  const SliceAttrs attrs = normalised(checked_shape("slice", x), starts, stops, steps);
  return apply(ops::slice, {&x.tensor()}, &attrs, x.site());
}

Tensor slice_along(const Arg& x, std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const Shape& shape = checked_shape("slice", x);
  const std::int64_t wanted = axis < 0 ? axis + shape.rank : axis;
  if (!valid_axis(wanted, shape.rank))
    throw TypeError(
        error_text("slice", fmt::format("dimension {} is outside {}", axis, to_string(x.tensor().type())), x.site()));
  Ints starts, stops, steps;
  for (int i = 0; i < shape.rank; ++i) {
    starts.push_back(i == wanted ? start : 0);
    stops.push_back(i == wanted ? stop : shape[i]);
    steps.push_back(i == wanted ? step : 1);
  }
  return slice(x, starts, stops, steps);
}

Tensor slice_assign(const Arg& base, const Tensor& piece, const Ints& starts, const Ints& stops, const Ints& steps) {
  const SliceAttrs attrs = normalised(checked_shape("slice_assign", base), starts, stops, steps);
  return apply(ops::slice_assign, {&base.tensor(), &piece}, &attrs, base.site());
}

Tensor diagonal(const Arg& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  const DiagonalAttrs attrs = diagonal_attrs(checked_shape("diagonal", x), offset, axis1, axis2);
  return apply(ops::diagonal, {&x.tensor()}, &attrs, x.site());
}

Tensor diagonal_assign(const Arg& base, const Tensor& piece, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  const DiagonalAttrs attrs = diagonal_attrs(checked_shape("diagonal_assign", base), offset, axis1, axis2);
  return apply(ops::diagonal_assign, {&base.tensor(), &piece}, &attrs, base.site());
}

Tensor broadcast_to(const Arg& x, const Shape& shape) {
  if (checked_shape("broadcast_to", x) == shape) return x.tensor();
  ShapeAttrs attrs;
  for (std::int64_t s : shape) attrs.shape.push_back(s);
  return apply(ops::broadcast_to, {&x.tensor()}, &attrs, x.site());
}

Tensor pad(const Arg& x, const Ints& before, const Ints& after) {
  const PadAttrs attrs{before, after};
  return apply(ops::pad, {&x.tensor()}, &attrs, x.site());
}

namespace {
// Casts the tensors to the dtype that they all promote to. Undefined tensors are passed on; inference refuses them.
std::vector<Tensor> of_one_dtype(std::vector<Tensor> tensors, Site site) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors)
    if (t.defined()) dtype = promote(dtype, t.dtype());
  const CastAttrs attrs{dtype};
  for (Tensor& t : tensors)
    if (t.defined() && t.dtype() != dtype) t = apply(ops::cast, {&t}, &attrs, site);
  return tensors;
}
}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis, Site site) {
  if (tensors.empty() || !tensors[0].defined()) throw TypeError(error_text("concat", "needs at least one tensor", site));
  const AxisAttrs attrs{axis < 0 ? axis + tensors[0].rank() : axis};
  return apply_all(ops::concat, of_one_dtype(tensors, site), &attrs, site)[0];
}

Tensor alias(const Arg& x) { return apply(ops::alias, {&x.tensor()}, nullptr, x.site()); }

Tensor stop_gradient(const Arg& x) { return apply(ops::stop_gradient, {&x.tensor()}, nullptr, x.site()); }

Tensor contiguous(const Arg& x) {
  checked_shape("copy", x);
  return x.tensor().dense() ? x.tensor() : apply(ops::copy, {&x.tensor()}, nullptr, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/movement.h>
