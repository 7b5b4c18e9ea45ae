// Adaptive pools, mean and maximum, and their gradients. Along a dimension of `in` elements, output o of `out` covers the
// elements from floor(o in / out) to ceil((o + 1) in / out). A thread computes one element of the result, with the bits of the
// CPU kernel.
#pragma once

#include <tapedeck/kernels/cuda/convolution/planes.h>
#include <tapedeck/kernels/cuda/device_fault.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace pooling {

using namespace convolution;

// `x` and `y` are the planes of the image and of the result, or their gradients.
struct AdaptiveArgs {
  Planes x, y, index;
  std::int64_t n, in_plane, out_plane;
  std::int64_t height, width, out_height, out_width;
  int in[3], out[3];
  KernelFault* fault;
};

// The elements that a result covers along one dimension, or the results that cover an element: first <= i < last.
struct Span {
  std::int64_t first, last;
};
TAPEDECK_DEVICE Span covered_by(std::int64_t o, std::int64_t in, std::int64_t out) {
  return {o * in / out, ((o + 1) * in + out - 1) / out};
}
TAPEDECK_DEVICE Span covering(std::int64_t i, std::int64_t in, std::int64_t out) {
  return {i * out / in, ((i + 1) * out + in - 1) / in};
}

struct AdaptiveWindow {
  Span rows, columns;
  TAPEDECK_DEVICE std::int64_t size() const { return (rows.last - rows.first) * (columns.last - columns.first); }
};
TAPEDECK_DEVICE AdaptiveWindow window_of(const AdaptiveArgs& p, std::int64_t row, std::int64_t column) {
  return {covered_by(row, p.height, p.out_height), covered_by(column, p.width, p.out_width)};
}

template <class T>
TAPEDECK_KERNEL void adaptive_avg_pool_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const AdaptiveWindow w = window_of(p, e.h, e.w);
    const Plane<T> x = p.x.plane<T>(e.plane);
    Value<T> total = 0;
    for (std::int64_t r = w.rows.first; r < w.rows.last; ++r) {
      Value<T> part = 0;
      for (std::int64_t c = w.columns.first; c < w.columns.last; ++c) part += x[r * p.width + c];
      total += part;
    }
    p.y.plane<T>(e.plane).set(e.at, total / static_cast<Value<T>>(w.size()));
  }
}

template <class T>
TAPEDECK_KERNEL void adaptive_avg_pool_grad_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.in_plane, p.in);
    const Span rows = covering(e.h, p.height, p.out_height), columns = covering(e.w, p.width, p.out_width);
    const Plane<T> dy = p.y.plane<T>(e.plane);
    Value<T> sum = 0;
    for (std::int64_t r = rows.first; r < rows.last; ++r)
      for (std::int64_t c = columns.first; c < columns.last; ++c)
        sum += dy[r * p.out_width + c] / static_cast<Value<T>>(window_of(p, r, c).size());
    p.x.plane<T>(e.plane).set(e.at, sum);
  }
}

// The place in the plane of the first maximum of a window; the first NaN counts as the maximum.
template <class T>
TAPEDECK_DEVICE std::int64_t first_maximum(const AdaptiveArgs& p, const AdaptiveWindow& w, const Plane<T>& x) {
  std::int64_t best = w.rows.first * p.width + w.columns.first;
  Value<T> top = x[best];
  for (std::int64_t r = w.rows.first; r < w.rows.last; ++r)
    for (std::int64_t c = w.columns.first; c < w.columns.last; ++c) {
      const Value<T> a = x[r * p.width + c];
      if (a > top || (a != a && top == top)) top = a, best = r * p.width + c;
    }
  return best;
}

template <class T>
TAPEDECK_KERNEL void adaptive_max_pool_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const Plane<T> x = p.x.plane<T>(e.plane);
    p.y.plane<T>(e.plane).set(e.at, x[first_maximum(p, window_of(p, e.h, e.w), x)]);
  }
}

template <class T>
TAPEDECK_KERNEL void adaptive_max_pool_index_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const std::int64_t best = first_maximum(p, window_of(p, e.h, e.w), p.x.plane<T>(e.plane));
    p.index.plane<std::int32_t>(e.plane).set(e.at, static_cast<std::int32_t>(best));
  }
}

TAPEDECK_DEVICE bool is_place(const AdaptiveArgs& p, std::int32_t index) {
  if (index >= 0 && index < p.in_plane) return true;
  report_fault(p.fault, Fault::index_outside_plane, index);
  return false;
}

template <class T>
TAPEDECK_KERNEL void adaptive_max_pool_at_index_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const std::int32_t index = p.index.plane<std::int32_t>(e.plane)[e.at];
    p.y.plane<T>(e.plane).set(e.at, is_place(p, index) ? p.x.plane<T>(e.plane)[index] : Value<T>(0));
  }
}

// An index may name any element of its plane, so the thread of an element looks at all indices of the plane.
template <class T>
TAPEDECK_KERNEL void adaptive_max_pool_grad_kernel(const AdaptiveArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.in_plane, p.in);
    const Plane<T> dy = p.y.plane<T>(e.plane);
    const Plane<std::int32_t> index = p.index.plane<std::int32_t>(e.plane);
    Value<T> sum = 0;
    for (std::int64_t o = 0; o < p.out_plane; ++o)
      if (is_place(p, index[o]) && index[o] == e.at) sum += dy[o];
    p.x.plane<T>(e.plane).set(e.at, sum);
  }
}

// ---- the host ----

// The arguments for an image of the sizes of x and a result of the sizes of y.
inline AdaptiveArgs adaptive_args(const KernelCall& call, const View& x, const View& y) {
  AdaptiveArgs p{};
  p.n = call.outputs[0].numel(), p.fault = call.fault;
  p.height = x.sizes[2], p.width = x.sizes[3], p.out_height = y.sizes[2], p.out_width = y.sizes[3];
  p.in_plane = p.height * p.width, p.out_plane = p.out_height * p.out_width;
  set_sizes(p.in, x), set_sizes(p.out, y);
  return p;
}

}  // namespace pooling

// ---- the ops ----

using namespace pooling;

void adaptive_avg_pool2d(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, x, y);
  p.x = planes_of(x), p.y = planes_of(y);
  for_reals(call, x.dtype, [&](auto t) { launch(call, &adaptive_avg_pool_kernel<decltype(t)>, for_items(p.n), p); });
}

void adaptive_avg_pool2d_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, dx, dy);
  p.x = planes_of(dx), p.y = planes_of(dy);
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &adaptive_avg_pool_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

void adaptive_max_pool2d(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, x, y);
  p.x = planes_of(x), p.y = planes_of(y);
  for_reals(call, x.dtype, [&](auto t) { launch(call, &adaptive_max_pool_kernel<decltype(t)>, for_items(p.n), p); });
}

void adaptive_max_pool2d_index(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.outputs[0];
  if (index.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, x, index);
  p.x = planes_of(x), p.index = planes_of(index);
  for_reals(call, x.dtype, [&](auto t) { launch(call, &adaptive_max_pool_index_kernel<decltype(t)>, for_items(p.n), p); });
}

void adaptive_max_pool2d_at_index(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, x, y);
  p.x = planes_of(x), p.index = planes_of(call.inputs[1]), p.y = planes_of(y);
  for_reals(call, x.dtype, [&](auto t) { launch(call, &adaptive_max_pool_at_index_kernel<decltype(t)>, for_items(p.n), p); });
}

void adaptive_max_pool2d_grad_from_index(const KernelCall& call) {
  const View &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  AdaptiveArgs p = adaptive_args(call, dx, dy);
  p.x = planes_of(dx), p.index = planes_of(call.inputs[0]), p.y = planes_of(dy);
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &adaptive_max_pool_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
