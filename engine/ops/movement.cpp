#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/vjp.h>

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
    f.fail(fmt::format("{} has {} elements, {} has {}", to_string(f.inputs[0]), f.inputs[0].numel(), to_string(shape), shape.numel()));
  f.outputs.assign(1, Type{f.inputs[0].dtype, shape});
}

// A reshape of strided data is a view if every group of old dimensions that merges into new ones is itself contiguous. This takes the
// common cases: dense data, and dimensions of size one that come or go.
bool view_reshape(const Type& in, const std::int64_t* strides, const void*, const Type& out, std::int64_t* offset,
                  std::int64_t* out_strides) {
  *offset = 0;
  std::int64_t expected = 1;
  bool dense = true;
  for (int i = in.shape.rank - 1; i >= 0; --i) {
    if (in.shape[i] != 1 && strides[i] != expected) dense = false;
    expected *= in.shape[i];
  }
  if (dense || in.numel() == 0) {
    dense_strides(out.shape, out_strides);
    return true;
  }
  int i = 0;
  for (int o = 0; o < out.shape.rank; ++o) {
    if (out.shape[o] == 1) {
      out_strides[o] = 0;
      continue;
    }
    while (i < in.shape.rank && in.shape[i] == 1) ++i;
    if (i == in.shape.rank || in.shape[i] != out.shape[o]) return false;
    out_strides[o] = strides[i++];
  }
  return true;
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

bool view_transpose(const Type& in, const std::int64_t* strides, const void* attrs, const Type&, std::int64_t* offset,
                    std::int64_t* out_strides) {
  *offset = 0;
  const auto& a = *static_cast<const PermuteAttrs*>(attrs);
  for (int i = 0; i < in.shape.rank; ++i) out_strides[i] = strides[a.axes[i]];
  return true;
}

// ---- slice ----

void infer_slice(Infer& f) {
  const auto& a = f.attributes<SliceAttrs>();
  require_list(f, a.starts, "starts");
  require_list(f, a.stops, "stops");
  Type out = f.inputs[0];
  for (int i = 0; i < out.shape.rank; ++i) {
    if (a.starts[i] < 0 || a.stops[i] < a.starts[i] || a.stops[i] > out.shape[i])
      f.fail(fmt::format("{}:{} is outside dimension {} of {}", a.starts[i], a.stops[i], i, to_string(f.inputs[0])));
    out.shape[i] = a.stops[i] - a.starts[i];
  }
  f.outputs.assign(1, out);
}

bool view_slice(const Type& in, const std::int64_t* strides, const void* attrs, const Type&, std::int64_t* offset,
                std::int64_t* out_strides) {
  const auto& a = *static_cast<const SliceAttrs*>(attrs);
  *offset = 0;
  for (int i = 0; i < in.shape.rank; ++i) {
    *offset += a.starts[i] * strides[i];
    out_strides[i] = strides[i];
  }
  return true;
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
  for (int i = 0; i < out.shape.rank; ++i)
    out_strides[i] = i < lead || in.shape[i - lead] == 1 ? 0 : strides[i - lead];
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
    if (a.before[i] < 0 || a.after[i] < 0 || a.before[i] > kMaxTypeBytes || a.after[i] > kMaxTypeBytes) f.fail("padding must not be negative");
    out.shape[i] += a.before[i] + a.after[i];
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
    if (size < 0 || t != out) f.fail(fmt::format("{} does not continue {} along axis {}", to_string(f.inputs[i]), to_string(f.inputs[0]), axis));
    out.shape[d] += size;
  }
  f.outputs.assign(1, out);
}

const Shape& checked_shape(const char* op, const Arg& x) {
  if (!x.tensor().defined()) throw TypeError(error_text(op, "the operand is undefined", x.site()));
  return x.tensor().shape();
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
      throw TypeError(error_text("reshape", fmt::format("no size for -1: {} has {} elements, the others make {}",
                                                        to_string(x.tensor().type()), x.tensor().numel(), known), x.site()));
    all[static_cast<std::size_t>(open)] = x.tensor().numel() / known;
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

Tensor slice(const Arg& x, const Ints& starts, const Ints& stops) {
  const Shape& shape = checked_shape("slice", x);
  SliceAttrs attrs{starts, stops, {}};
  auto clamp = [](std::int64_t v, std::int64_t size) { return std::clamp<std::int64_t>(v < 0 ? v + size : v, 0, size); };
  for (int i = 0; i < shape.rank && i < starts.size && i < stops.size; ++i) {
    attrs.starts.items[i] = clamp(starts[i], shape[i]);
    attrs.stops.items[i] = std::max(attrs.starts[i], clamp(stops[i], shape[i]));
  }
  return apply(ops::slice, {&x.tensor()}, &attrs, x.site());
}

Tensor slice(const Arg& x, int dim, std::int64_t start, std::int64_t stop) {
  const Shape& shape = checked_shape("slice", x);
  Ints starts, stops;
  const int d = dim < 0 ? dim + shape.rank : dim;
  if (!valid_axis(d, shape.rank))
    throw TypeError(error_text("slice", fmt::format("dimension {} is outside {}", dim, to_string(x.tensor().type())), x.site()));
  for (int i = 0; i < shape.rank; ++i) {
    starts.push_back(i == d ? start : 0);
    stops.push_back(i == d ? stop : shape[i]);
  }
  return slice(x, starts, stops);
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

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis, Site site) {
  if (tensors.empty() || !tensors[0].defined()) throw TypeError(error_text("concat", "needs at least one tensor", site));
  const AxisAttrs attrs{axis < 0 ? axis + tensors[0].rank() : axis};
  return apply_all(ops::concat, tensors, &attrs, site)[0];
}

Tensor stop_gradient(const Arg& x) { return apply(ops::stop_gradient, {&x.tensor()}, nullptr, x.site()); }

Tensor contiguous(const Arg& x) {
  checked_shape("copy", x);
  return x.tensor().dense() ? x.tensor() : apply(ops::copy, {&x.tensor()}, nullptr, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/movement.h>
