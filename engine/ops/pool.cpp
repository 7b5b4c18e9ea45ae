// Inference, gradients and cost of pooling, and the functions for authors. Forward keeps no operand of max_pool: it keeps the
// index of each maximum in its window, as u8 if that fits:
//
//       x [n,c,h,w]  ->  y [n,c,oh,ow]         backward: index u8 [n,c,oh,ow], dy  ->  dx [n,c,h,w]
//
// max_pool1d and avg_pool1d run as two-dimensional pools of [n,c,1,w].
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/pool.h>
#include <tapedeck/engine/ops/windows.h>
#include <tapedeck/kernels/cpu/pooling/pool.h>

#include <fmt/format.h>

#include <cstdint>

namespace tapedeck {
namespace {

using kernels::cpu::item;
using kernels::cpu::pool_stride;

// ---- types ----

void require_rank(const Infer& f, const Type& x, int dims) {
  static constexpr const char* kDimensions[] = {"three", "four", "five"};
  if (x.shape.rank != dims + 2) f.fail(fmt::format("needs {} dimensions, got {}", kDimensions[dims - 1], to_string(x)));
  infer_require_float(f, x);
}

struct Windows {
  const Ints &window, &stride, &padding;
  Ints dilation;
  bool ceil_mode;
};
Windows windows_of(const PoolAttrs& a) { return {a.window, a.stride, a.padding, a.dilation, a.ceil_mode}; }
Windows windows_of(const PoolIndexGradAttrs& a) { return {a.window, a.stride, a.padding, a.dilation, a.ceil_mode}; }
Windows windows_of(const AvgPoolAttrs& a) { return {a.window, a.stride, a.padding, {1}, a.ceil_mode}; }
Windows windows_of(const AvgPoolGradAttrs& a) { return {a.window, a.stride, a.padding, {1}, a.ceil_mode}; }

void check_windows(const Infer& f, const Windows& a, int dims) {
  check_spatial(f, "window", a.window, dims, 1);
  if (a.stride.size) check_spatial(f, "stride", a.stride, dims, 1);
  check_spatial(f, "padding", a.padding, dims, 0);
  check_spatial(f, "dilation", a.dilation, dims, 1);
  std::int64_t taps = 1;
  for (int i = 0; i < dims; ++i) {
    const std::int64_t extent = item(a.dilation, i) * (item(a.window, i) - 1) + 1;
    if (2 * item(a.padding, i) > extent)
      f.fail(fmt::format("padding {} is more than half of the window {}", item(a.padding, i), extent));
    taps *= item(a.window, i);
    if (taps > INT32_MAX) f.fail("the window is too large");
  }
}

// The number of windows along a dimension, or -1 if none fits. The last window begins inside the image or in the padding
// before it.
std::int64_t count_windows(std::int64_t size, const Windows& a, int i) {
  const std::int64_t pad = item(a.padding, i), stride = pool_stride(a.stride, a.window, i);
  const std::int64_t room = size < 1 ? -1 : window_room(size + 2 * pad, item(a.window, i), item(a.dilation, i));
  if (room < 0) return -1;
  if (!a.ceil_mode) return room / stride + 1;
  const std::int64_t last = (room + stride - 1) / stride;
  return last * stride >= size + pad ? last : last + 1;
}

// The type of the pool of x. Calls f.fail if the windows do not fit.
Type pool_type(const Infer& f, const Type& x, const Windows& a, int dims) {
  require_rank(f, x, dims);
  check_windows(f, a, dims);
  Type y = x;
  for (int i = 0; i < dims; ++i) {
    y.shape[2 + i] = count_windows(x.shape[2 + i], a, i);
    if (y.shape[2 + i] < 1) f.fail(fmt::format("the window does not fit into {}", to_string(x)));
  }
  return y;
}

template <int kDims>
void infer_max_pool(Infer& f) {
  f.outputs.assign(1, pool_type(f, f.inputs[0], windows_of(f.attributes<PoolAttrs>()), kDims));
}

template <int kDims>
void infer_avg_pool(Infer& f) {
  f.outputs.assign(1, pool_type(f, f.inputs[0], windows_of(f.attributes<AvgPoolAttrs>()), kDims));
}

void require_gradient(const Infer& f, const Type& dy, const Type& y) {
  if (dy != y) f.fail(fmt::format("the gradient has type {}, not {}", to_string(dy), to_string(y)));
}

void infer_max_pool_grad(Infer& f) {
  const Type x = f.inputs[0];
  require_gradient(f, f.inputs[1], pool_type(f, x, windows_of(f.attributes<PoolAttrs>()), 2));
  f.outputs.assign(1, x);
}

// u8 if every position in a window fits into it, else i32.
DType index_dtype(const Windows& a, int dims) {
  std::int64_t taps = 1;
  for (int i = 0; i < dims; ++i) taps *= item(a.window, i);
  return taps <= 256 ? DType::u8 : DType::i32;
}

template <int kDims>
void infer_max_pool_index(Infer& f) {
  const Windows a = windows_of(f.attributes<PoolAttrs>());
  const Type y = pool_type(f, f.inputs[0], a, kDims);
  f.outputs.assign(1, Type{index_dtype(a, kDims), y.shape});
}

void require_index(const Infer& f, const Type& index, DType dtype, const Type& y) {
  const Type wanted{dtype, y.shape};
  if (index != wanted) f.fail(fmt::format("the index has type {}, not {}", to_string(index), to_string(wanted)));
}

// The type of dy with the spatial sizes `size`.
Type resized(const Infer& f, const Type& dy, const Ints& size, int dims) {
  require_rank(f, dy, dims);
  if (size.size != dims) f.fail(fmt::format("size takes {} numbers, got {}", dims, size.size));
  Type x = dy;
  for (int i = 0; i < dims; ++i) {
    if (size[i] < 1) f.fail("size must be at least 1");
    x.shape[2 + i] = size[i];
  }
  if (checked_bytes(x.dtype, {x.shape.sizes, static_cast<std::size_t>(x.shape.rank)}) < 0) f.fail("size is too large");
  return x;
}

template <int kDims>
void infer_max_pool_grad_from_index(Infer& f) {
  const auto& a = f.attributes<PoolIndexGradAttrs>();
  const Windows w = windows_of(a);
  const Type dy = f.inputs[1], x = resized(f, dy, a.size, kDims), y = pool_type(f, x, w, kDims);
  require_gradient(f, dy, y);
  require_index(f, f.inputs[0], index_dtype(w, kDims), y);
  f.outputs.assign(1, x);
}

template <int kDims>
void infer_max_pool_at_index(Infer& f) {
  const Windows w = windows_of(f.attributes<PoolAttrs>());
  const Type y = pool_type(f, f.inputs[0], w, kDims);
  require_index(f, f.inputs[1], index_dtype(w, kDims), y);
  f.outputs.assign(1, y);
}

template <int kDims>
void infer_avg_pool_grad(Infer& f) {
  const auto& a = f.attributes<AvgPoolGradAttrs>();
  const Type dy = f.inputs[0], x = resized(f, dy, a.size, kDims);
  require_gradient(f, dy, pool_type(f, x, windows_of(a), kDims));
  f.outputs.assign(1, x);
}

void require_pixels(const Infer& f, const Type& x) {
  require_rank(f, x, 2);
  if (x.shape[2] < 1 || x.shape[3] < 1) f.fail(fmt::format("nothing to pool in {}", to_string(x)));
  if (x.shape[2] > INT32_MAX / x.shape[3]) f.fail(fmt::format("planes of {} are too large", to_string(x)));
}

void infer_adaptive_pool(Infer& f) {
  const Type x = f.inputs[0], y = resized(f, x, f.attributes<AdaptivePoolAttrs>().size, 2);
  require_pixels(f, x);
  require_pixels(f, y);
  f.outputs.assign(1, y);
}

void infer_adaptive_index(Infer& f) {
  infer_adaptive_pool(f);
  f.outputs[0].dtype = DType::i32;
}

void infer_adaptive_grad_from_index(Infer& f) {
  const Type index = f.inputs[0], dy = f.inputs[1], x = resized(f, dy, f.attributes<AdaptivePoolAttrs>().size, 2);
  require_pixels(f, x);
  require_index(f, index, DType::i32, dy);
  f.outputs.assign(1, x);
}

void infer_adaptive_at_index(Infer& f) {
  const Type x = f.inputs[0], index = f.inputs[1];
  require_pixels(f, x);
  Type y = x;
  if (index.shape.rank == 4) y.shape[2] = index.shape[2], y.shape[3] = index.shape[3];
  require_index(f, index, DType::i32, y);
  f.outputs.assign(1, y);
}

// ---- the attributes of one op, made from the attributes of another ----

Ints spatial(const Shape& shape) {
  Ints size;
  for (int i = 2; i < shape.rank; ++i) size.push_back(shape[i]);
  return size;
}
AdaptivePoolAttrs sizes_of(const Tensor& x) { return {spatial(x.shape())}; }
PoolIndexGradAttrs index_grad_attrs(const PoolAttrs& a, const Shape& x) {
  return {a.window, a.stride, a.padding, a.dilation, spatial(x), a.ceil_mode};
}
PoolAttrs pool_attrs(const PoolIndexGradAttrs& a) { return {a.window, a.stride, a.padding, a.dilation, a.ceil_mode}; }
AvgPoolGradAttrs avg_grad_attrs(const AvgPoolAttrs& a, const Shape& x) {
  return {a.window, a.stride, a.padding, spatial(x), a.ceil_mode, a.count_include_pad};
}
AvgPoolAttrs avg_attrs(const AvgPoolGradAttrs& a) { return {a.window, a.stride, a.padding, a.ceil_mode, a.count_include_pad}; }

template <Tensor (*index_of)(const Arg&, const PoolAttrs&),
          Tensor (*grad)(const Arg&, const Tensor&, const PoolIndexGradAttrs&)>
void vjp_max_pool(Vjp& b) {
  const auto& a = b.attributes<PoolAttrs>();
  b.dx(0, grad(index_of(b.x(0), a), b.dy(), index_grad_attrs(a, b.x(0).shape())));
}

// ---- functions for authors ----

template <class Attrs>
Attrs for_pool_dims(Attrs a, int dims) {
  a.stride = for_each_dimension(a.stride.size ? a.stride : a.window, dims);
  a.window = for_each_dimension(a.window, dims);
  a.padding = for_each_dimension(a.padding, dims);
  if constexpr (requires { a.dilation; }) a.dilation = for_each_dimension(a.dilation, dims);
  return a;
}

template <class Attrs>
Tensor pool(const Op& op, int dims, const Arg& x, const Attrs& attrs) {
  const Attrs each = for_pool_dims(attrs, dims);
  return apply(op, {&x.tensor()}, &each, x.site());
}

template <class Attrs>
Tensor pool(const Op& op, int dims, const Arg& x, const Tensor& y, const Attrs& attrs) {
  const Attrs each = for_pool_dims(attrs, dims);
  return apply(op, {&x.tensor(), &y}, &each, x.site());
}

// Runs a pool of [n,c,w] as a pool of [n,c,1,w]. Errors name the function that the author called.
template <class Attrs>
Tensor pool_rows(const char* name, const Op& op, const Arg& x, const Attrs& attrs) {
  require_defined(name, x);
  const Tensor& t = x.tensor();
  Op named;
  named.name = name;
  std::vector<Type> outputs;
  const Type inputs[] = {t.type()};
  try {
    pool_type(Infer{named, inputs, nullptr, outputs}, inputs[0], windows_of(attrs), 1);
  } catch (const TypeError& error) {
    throw TypeError(error_text(name, error.message(), x.site()));
  }
  Attrs flat = for_pool_dims(attrs, 1);
  flat.window = {1, flat.window[0]}, flat.stride = {1, flat.stride[0]}, flat.padding = {0, flat.padding[0]};
  if constexpr (requires { flat.dilation; }) flat.dilation = {1, flat.dilation[0]};
  const Tensor y = pool(op, 2, at(reshape(x, Shape{t.size(0), t.size(1), 1, t.size(2)}), x.site()), flat);
  return reshape(at(y, x.site()), Shape{y.size(0), y.size(1), y.size(3)});
}

// Whether the adaptive windows are equal windows side by side. If so, *window is their size.
bool equal_windows(const Tensor& x, const Ints& size, Ints* window) {
  if (!x.defined() || x.rank() != 4 || size.size != 2) return false;
  for (int i = 0; i < 2; ++i)
    if (size[i] < 1 || x.size(2 + i) < 1 || x.size(2 + i) % size[i] != 0 || x.size(2 + i) / size[i] > kMaxWindowStep)
      return false;
  *window = {x.size(2) / size[0], x.size(3) / size[1]};
  return true;
}

Tensor adaptive_windows(const Arg& dy, const AdaptivePoolAttrs& attrs) {
  return apply(ops::adaptive_avg_pool2d, {&dy.tensor()}, &attrs, dy.site());
}

Ints spatial_axes(const char* name, const Arg& x) {
  require_defined(name, x);
  const int rank = x.tensor().rank();
  if (rank < 3)
    throw TypeError(error_text(name, fmt::format("needs [n,c,spatial], got {}", to_string(x.tensor().type())), x.site()));
  Ints axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  return axes;
}

// The cost counts each element of each window once.
template <class Attrs>
Cost cost_of(std::span<const Type> in, std::span<const Type> out, const Type& y, const Attrs& attrs) {
  Cost cost = cost_like_copy(in, out, nullptr);
  double taps = 1;
  for (int i = 0; i < y.shape.rank - 2; ++i) taps *= static_cast<double>(item(attrs.window, i));
  cost.flops = static_cast<double>(y.numel()) * taps;
  return cost;
}
template <class Attrs>
Cost cost_of_results(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  return cost_of(in, out, out[0], *static_cast<const Attrs*>(attrs));
}
template <class Attrs>
Cost cost_of_gradient(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  return cost_of(in, out, in.back(), *static_cast<const Attrs*>(attrs));
}

}  // namespace

Tensor max_pool1d(const Arg& x, const PoolAttrs& attrs) { return pool_rows("max_pool1d", ops::max_pool2d, x, attrs); }
Tensor max_pool2d(const Arg& x, const PoolAttrs& attrs) { return pool(ops::max_pool2d, 2, x, attrs); }
Tensor max_pool3d(const Arg& x, const PoolAttrs& attrs) { return pool(ops::max_pool3d, 3, x, attrs); }
Tensor avg_pool1d(const Arg& x, const AvgPoolAttrs& attrs) { return pool_rows("avg_pool1d", ops::avg_pool2d, x, attrs); }
Tensor avg_pool2d(const Arg& x, const AvgPoolAttrs& attrs) { return pool(ops::avg_pool2d, 2, x, attrs); }
Tensor avg_pool3d(const Arg& x, const AvgPoolAttrs& attrs) { return pool(ops::avg_pool3d, 3, x, attrs); }

Tensor adaptive_avg_pool2d(const Arg& x, const Ints& size) {
  const Ints each = for_each_dimension(size, 2);
  Ints window;
  if (!equal_windows(x.tensor(), each, &window)) return adaptive_windows(x, {each});
  if (each == Ints{1, 1}) return global_avg_pool(x);
  return avg_pool2d(x, {.window = window});
}

Tensor adaptive_max_pool2d(const Arg& x, const Ints& size) {
  const AdaptivePoolAttrs attrs{for_each_dimension(size, 2)};
  Ints window;
  if (equal_windows(x.tensor(), attrs.size, &window)) return max_pool2d(x, {.window = window});
  return apply(ops::adaptive_max_pool2d, {&x.tensor()}, &attrs, x.site());
}

Tensor global_avg_pool(const Arg& x) { return mean(x, spatial_axes("global_avg_pool", x), true); }
Tensor global_max_pool(const Arg& x) { return max(x, spatial_axes("global_max_pool", x), true); }

Tensor max_pool2d_grad(const Arg& x, const Tensor& dy, const PoolAttrs& attrs) {
  return pool(ops::max_pool2d_grad, 2, x, dy, attrs);
}
Tensor max_pool2d_index(const Arg& x, const PoolAttrs& attrs) { return pool(ops::max_pool2d_index, 2, x, attrs); }
Tensor max_pool2d_grad_from_index(const Arg& index, const Tensor& dy, const PoolIndexGradAttrs& attrs) {
  return pool(ops::max_pool2d_grad_from_index, 2, index, dy, attrs);
}
Tensor max_pool2d_at_index(const Arg& x, const Tensor& index, const PoolAttrs& attrs) {
  return pool(ops::max_pool2d_at_index, 2, x, index, attrs);
}
Tensor max_pool3d_index(const Arg& x, const PoolAttrs& attrs) { return pool(ops::max_pool3d_index, 3, x, attrs); }
Tensor max_pool3d_grad_from_index(const Arg& index, const Tensor& dy, const PoolIndexGradAttrs& attrs) {
  return pool(ops::max_pool3d_grad_from_index, 3, index, dy, attrs);
}
Tensor max_pool3d_at_index(const Arg& x, const Tensor& index, const PoolAttrs& attrs) {
  return pool(ops::max_pool3d_at_index, 3, x, index, attrs);
}
Tensor avg_pool2d_grad(const Arg& dy, const AvgPoolGradAttrs& attrs) { return pool(ops::avg_pool2d_grad, 2, dy, attrs); }
Tensor avg_pool3d_grad(const Arg& dy, const AvgPoolGradAttrs& attrs) { return pool(ops::avg_pool3d_grad, 3, dy, attrs); }
Tensor adaptive_avg_pool2d_grad(const Arg& dy, const AdaptivePoolAttrs& attrs) {
  return apply(ops::adaptive_avg_pool2d_grad, {&dy.tensor()}, &attrs, dy.site());
}
Tensor adaptive_max_pool2d_index(const Arg& x, const AdaptivePoolAttrs& attrs) {
  return apply(ops::adaptive_max_pool2d_index, {&x.tensor()}, &attrs, x.site());
}
Tensor adaptive_max_pool2d_grad_from_index(const Arg& index, const Tensor& dy, const AdaptivePoolAttrs& attrs) {
  return apply(ops::adaptive_max_pool2d_grad_from_index, {&index.tensor(), &dy}, &attrs, index.site());
}
Tensor adaptive_max_pool2d_at_index(const Arg& x, const Tensor& index) {
  return apply(ops::adaptive_max_pool2d_at_index, {&x.tensor(), &index}, nullptr, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/pool.h>
