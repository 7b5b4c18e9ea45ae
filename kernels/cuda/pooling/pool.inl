// Maximum and mean pools over windows in two and three dimensions, their gradients, and the indices of maxima. A thread
// computes one element of the result. A gradient gathers: the thread of an input element looks at the windows that cover it, in
// the order of the windows, so that sums have one order and no atomics are needed. The results have the bits of the CPU
// kernels, but for means of overlapping windows in rows of more than 128 results, where the CPU adds in another order.
#pragma once

#include <tapedeck/kernels/cpu/pooling/pool.h>
#include <tapedeck/kernels/cuda/convolution/planes.h>
#include <tapedeck/kernels/cuda/device_fault.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace pooling {

using namespace convolution;

// The operands of a pool. `in` is x or its gradient, and `out` is y or its gradient.
struct PoolArgs {
  Planes x, y, index, dx;
  std::int64_t n, in_plane, out_plane, taps;
  int in[3], out[3], window[3], stride[3], pad[3], dilation[3];
  bool wide_index;  // i32, not u8
  bool count_pad;
  KernelFault* fault;
};

TAPEDECK_DEVICE int window_position(const PoolArgs& p, int dim, int o, int k) {
  return o * p.stride[dim] + k * p.dilation[dim] - p.pad[dim];
}
TAPEDECK_DEVICE bool in_image(const PoolArgs& p, int dim, int at) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(p.in[dim]);
}
TAPEDECK_DEVICE std::int64_t input_offset(const PoolArgs& p, int d, int h, int w) {
  return (static_cast<std::int64_t>(d) * p.in[1] + h) * p.in[2] + w;
}
TAPEDECK_DEVICE std::int64_t output_offset(const PoolArgs& p, int d, int h, int w) {
  return (static_cast<std::int64_t>(d) * p.out[1] + h) * p.out[2] + w;
}

// Calls f(tap, offset in the plane) for the taps of a window that lie inside the image, in row-major order.
template <class F>
TAPEDECK_DEVICE void for_taps(const PoolArgs& p, int d, int h, int w, const F& f) {
  for (int kd = 0; kd < p.window[0]; ++kd) {
    const int at_d = window_position(p, 0, d, kd);
    if (!in_image(p, 0, at_d)) continue;
    for (int kh = 0; kh < p.window[1]; ++kh) {
      const int at_h = window_position(p, 1, h, kh);
      if (!in_image(p, 1, at_h)) continue;
      for (int kw = 0; kw < p.window[2]; ++kw) {
        const int at_w = window_position(p, 2, w, kw);
        if (in_image(p, 2, at_w)) f((kd * p.window[1] + kh) * p.window[2] + kw, input_offset(p, at_d, at_h, at_w));
      }
    }
  }
}

// The windows along a dimension that may cover element `at`, and the tap with which window o covers it: -1 if none does, which
// happens with dilation.
struct Covering {
  int first, last;
};
TAPEDECK_DEVICE Covering windows_over(const PoolArgs& p, int dim, int at) {
  const int end = at + p.pad[dim], begin = end - (p.window[dim] - 1) * p.dilation[dim];
  const int first = begin > 0 ? (begin + p.stride[dim] - 1) / p.stride[dim] : 0, last = end / p.stride[dim];
  return {first, last < p.out[dim] ? last : p.out[dim] - 1};
}
TAPEDECK_DEVICE int tap_over(const PoolArgs& p, int dim, int at, int o) {
  const int distance = at + p.pad[dim] - o * p.stride[dim];
  if (p.dilation[dim] == 1) return distance;
  return distance % p.dilation[dim] == 0 ? distance / p.dilation[dim] : -1;
}

// Calls f(d, h, w, tap) for every window that covers an input element, in the order of the windows.
template <class F>
TAPEDECK_DEVICE void for_windows_over(const PoolArgs& p, const Element& e, const F& f) {
  const Covering depths = windows_over(p, 0, e.d), rows = windows_over(p, 1, e.h), columns = windows_over(p, 2, e.w);
  for (int d = depths.first; d <= depths.last; ++d) {
    const int kd = tap_over(p, 0, e.d, d);
    if (kd < 0) continue;
    for (int h = rows.first; h <= rows.last; ++h) {
      const int kh = tap_over(p, 1, e.h, h);
      if (kh < 0) continue;
      for (int w = columns.first; w <= columns.last; ++w) {
        const int kw = tap_over(p, 2, e.w, w);
        if (kw >= 0) f(d, h, w, (kd * p.window[1] + kh) * p.window[2] + kw);
      }
    }
  }
}

// ---- maxima ----

// The maximum of a window, and its tap: -1 if the window has no element inside the image. The first maximum wins, and the first
// NaN counts as the maximum. If no element is above -inf, the first element is the maximum.
template <class R>
struct Maximum {
  R top;
  int tap;
};
template <class T>
TAPEDECK_DEVICE Maximum<Value<T>> find_maximum(const PoolArgs& p, const Plane<T>& plane, int d, int h, int w) {
  Value<T> top = -static_cast<Value<T>>(INFINITY);
  int first = -1, best = -1;
  for_taps(p, d, h, w, [&](int tap, std::int64_t at) {
    const Value<T> x = plane[at];
    if (first < 0) first = tap;
    if (top == top && (x > top || x != x)) top = x, best = tap;
  });
  return {top, best < 0 ? first : best};
}

template <class T>
TAPEDECK_KERNEL void max_pool_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    p.y.plane<T>(e.plane).set(e.at, find_maximum(p, p.x.plane<T>(e.plane), e.d, e.h, e.w).top);
  }
}

template <class T>
TAPEDECK_KERNEL void max_pool_index_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const int tap = find_maximum(p, p.x.plane<T>(e.plane), e.d, e.h, e.w).tap, index = tap < 0 ? 0 : tap;
    if (p.wide_index)
      p.index.plane<std::int32_t>(e.plane).set(e.at, index);
    else
      p.index.plane<std::uint8_t>(e.plane).set(e.at, static_cast<std::uint8_t>(index));
  }
}

// The index of a result; an index outside of the window is reported, and read as -1.
TAPEDECK_DEVICE int index_at(const PoolArgs& p, std::int64_t plane, std::int64_t at) {
  const int index = p.wide_index ? p.index.plane<std::int32_t>(plane)[at] : p.index.plane<std::uint8_t>(plane)[at];
  if (index >= 0 && index < p.taps) return index;
  report_fault(p.fault, Fault::index_outside_window, index);
  return -1;
}

template <class T>
TAPEDECK_KERNEL void max_pool_at_index_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const int tap = index_at(p, e.plane, e.at), row = tap / p.window[2];
    const int d = window_position(p, 0, e.d, row / p.window[1]), h = window_position(p, 1, e.h, row % p.window[1]);
    const int w = window_position(p, 2, e.w, tap % p.window[2]);
    const bool inside = tap >= 0 && in_image(p, 0, d) && in_image(p, 1, h) && in_image(p, 2, w);
    p.y.plane<T>(e.plane).set(e.at, inside ? p.x.plane<T>(e.plane)[input_offset(p, d, h, w)] : Value<T>(0));
  }
}

template <class T>
TAPEDECK_KERNEL void max_pool_grad_from_index_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.in_plane, p.in);
    const Plane<T> dy = p.y.plane<T>(e.plane);
    Value<T> sum = 0;
    for_windows_over(p, e, [&](int d, int h, int w, int tap) {
      const std::int64_t at = output_offset(p, d, h, w);
      if (index_at(p, e.plane, at) == tap) sum += dy[at];
    });
    p.dx.plane<T>(e.plane).set(e.at, sum);
  }
}

// Finds the maximum of each window anew.
template <class T>
TAPEDECK_KERNEL void max_pool_grad_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.in_plane, p.in);
    const Plane<T> x = p.x.plane<T>(e.plane), dy = p.y.plane<T>(e.plane);
    Value<T> sum = 0;
    for_windows_over(p, e, [&](int d, int h, int w, int tap) {
      if (find_maximum(p, x, d, h, w).tap == tap) sum += dy[output_offset(p, d, h, w)];
    });
    p.dx.plane<T>(e.plane).set(e.at, sum);
  }
}

// ---- means ----

// The number of elements that window o counts along a dimension. Elements beyond the padding, which ceil_mode can add, never
// count.
TAPEDECK_DEVICE int counted(const PoolArgs& p, int dim, int o) {
  const int begin = o * p.stride[dim] - p.pad[dim], padded = p.in[dim] + p.pad[dim];
  const int end = begin + p.window[dim] < padded ? begin + p.window[dim] : padded;
  if (p.count_pad) return end - begin;
  return (end < p.in[dim] ? end : p.in[dim]) - (begin > 0 ? begin : 0);
}
template <class R>
TAPEDECK_DEVICE R divisor(const PoolArgs& p, int d, int h, int w) {
  return static_cast<R>(static_cast<std::int64_t>(counted(p, 0, d)) * counted(p, 1, h) * counted(p, 2, w));
}

// Each row of a window gets a sum of its own, as on the CPU.
template <class T>
TAPEDECK_KERNEL void avg_pool_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.out_plane, p.out);
    const Plane<T> x = p.x.plane<T>(e.plane);
    Value<T> total = 0, row_sum = 0;
    int row = 0;
    for_taps(p, e.d, e.h, e.w, [&](int tap, std::int64_t at) {
      if (tap / p.window[2] != row) total += row_sum, row_sum = 0, row = tap / p.window[2];
      row_sum += x[at];
    });
    p.y.plane<T>(e.plane).set(e.at, (total + row_sum) / divisor<Value<T>>(p, e.d, e.h, e.w));
  }
}

// The taps of a row are added in their order, as on the CPU: this is the reverse order of the windows.
template <class T>
TAPEDECK_KERNEL void avg_pool_grad_kernel(const PoolArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.in_plane, p.in);
    const Covering depths = windows_over(p, 0, e.d), rows = windows_over(p, 1, e.h), columns = windows_over(p, 2, e.w);
    const Plane<T> dy = p.y.plane<T>(e.plane);
    Value<T> sum = 0;
    for (int d = depths.first; d <= depths.last; ++d)
      for (int h = rows.first; h <= rows.last; ++h)
        for (int w = columns.last; w >= columns.first; --w)
          sum += dy[output_offset(p, d, h, w)] / divisor<Value<T>>(p, d, h, w);
    p.dx.plane<T>(e.plane).set(e.at, sum);
  }
}

// ---- the host ----

// The arguments for x (or its gradient) and y (or its gradient); the caller adds the operands.
template <class Attrs>
PoolArgs pool_args(const KernelCall& call, const View& x, const View& y, const Attrs& attrs) {
  const cpu::Pool pool = cpu::make_pool(x, y, attrs);
  PoolArgs p{};
  p.n = call.outputs[0].numel(), p.in_plane = pool.in_plane(), p.out_plane = pool.out_plane(), p.taps = pool.taps();
  for (std::size_t d = 0; d < 3; ++d) {
    p.in[d] = static_cast<int>(pool.in[d]), p.out[d] = static_cast<int>(pool.out[d]);
    p.window[d] = static_cast<int>(pool.window[d]), p.stride[d] = static_cast<int>(pool.stride[d]);
    p.pad[d] = static_cast<int>(pool.pad[d]), p.dilation[d] = static_cast<int>(pool.dilation[d]);
  }
  if constexpr (requires { attrs.count_include_pad; }) p.count_pad = attrs.count_include_pad;
  p.fault = call.fault;
  return p;
}

// True if no coordinate, nor the end of any window, exceeds 32 bits. Reports a pool that is larger.
inline bool fits_pool(const KernelCall& call, const View& x, const View& y, const PoolArgs& p) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  bool fits = p.taps < kMost;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t reach = static_cast<std::int64_t>(p.window[d]) * p.dilation[d];
    fits = fits && reach < kMost && p.pad[d] < kMost && p.stride[d] < kMost &&
           static_cast<std::int64_t>(p.out[d]) * p.stride[d] + reach < kMost;
  }
  for (int d = 2; d < x.rank; ++d) fits = fits && x.sizes[d] < kMost && y.sizes[d] < kMost;
  if (!fits) call.fault->report("pool too large for a device", p.in_plane);
  return fits;
}

inline void set_index(PoolArgs& p, const View& index) { p.index = planes_of(index), p.wide_index = index.dtype == DType::i32; }

// max_pool2d and so on: the kernels for x -> y.
inline void max_pool(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  PoolArgs p = pool_args(call, x, y, call.attributes<PoolAttrs>());
  p.x = planes_of(x), p.y = planes_of(y);
  if (!fits_pool(call, x, y, p)) return;
  for_reals(call, x.dtype, [&](auto t) { launch(call, &max_pool_kernel<decltype(t)>, for_items(p.n), p); });
}

inline void max_pool_index(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.outputs[0];
  if (index.numel() == 0) return;
  PoolArgs p = pool_args(call, x, index, call.attributes<PoolAttrs>());
  p.x = planes_of(x);
  set_index(p, index);
  if (!fits_pool(call, x, index, p)) return;
  for_reals(call, x.dtype, [&](auto t) { launch(call, &max_pool_index_kernel<decltype(t)>, for_items(p.n), p); });
}

inline void max_pool_at_index(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  PoolArgs p = pool_args(call, x, y, call.attributes<PoolAttrs>());
  p.x = planes_of(x), p.y = planes_of(y);
  set_index(p, call.inputs[1]);
  if (!fits_pool(call, x, y, p)) return;
  for_reals(call, x.dtype, [&](auto t) { launch(call, &max_pool_at_index_kernel<decltype(t)>, for_items(p.n), p); });
}

inline void max_pool_grad_from_index(const KernelCall& call) {
  const View &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  PoolArgs p = pool_args(call, dx, dy, call.attributes<PoolIndexGradAttrs>());
  p.y = planes_of(dy), p.dx = planes_of(dx);
  set_index(p, call.inputs[0]);
  if (!fits_pool(call, dx, dy, p)) return;
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &max_pool_grad_from_index_kernel<decltype(t)>, for_items(p.n), p); });
}

inline void avg_pool(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  PoolArgs p = pool_args(call, x, y, call.attributes<AvgPoolAttrs>());
  p.x = planes_of(x), p.y = planes_of(y);
  if (!fits_pool(call, x, y, p)) return;
  for_reals(call, x.dtype, [&](auto t) { launch(call, &avg_pool_kernel<decltype(t)>, for_items(p.n), p); });
}

inline void avg_pool_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  PoolArgs p = pool_args(call, dx, dy, call.attributes<AvgPoolGradAttrs>());
  p.y = planes_of(dy), p.dx = planes_of(dx);
  if (!fits_pool(call, dx, dy, p)) return;
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &avg_pool_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

}  // namespace pooling

// ---- the ops ----

using namespace pooling;

void max_pool2d(const KernelCall& call) { max_pool(call); }
void max_pool2d_index(const KernelCall& call) { max_pool_index(call); }
void max_pool2d_at_index(const KernelCall& call) { max_pool_at_index(call); }
void max_pool2d_grad_from_index(const KernelCall& call) { max_pool_grad_from_index(call); }
void avg_pool2d(const KernelCall& call) { avg_pool(call); }
void avg_pool2d_grad(const KernelCall& call) { avg_pool_grad(call); }
void max_pool3d(const KernelCall& call) { max_pool(call); }
void max_pool3d_index(const KernelCall& call) { max_pool_index(call); }
void max_pool3d_at_index(const KernelCall& call) { max_pool_at_index(call); }
void max_pool3d_grad_from_index(const KernelCall& call) { max_pool_grad_from_index(call); }
void avg_pool3d(const KernelCall& call) { avg_pool(call); }
void avg_pool3d_grad(const KernelCall& call) { avg_pool_grad(call); }

void max_pool2d_grad(const KernelCall& call) {
  const View &x = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  PoolArgs p = pool_args(call, x, dy, call.attributes<PoolAttrs>());
  p.x = planes_of(x), p.y = planes_of(dy), p.dx = planes_of(dx);
  if (!fits_pool(call, x, dy, p)) return;
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &max_pool_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
