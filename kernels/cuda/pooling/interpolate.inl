// Resampling of planes [n,c,...]: nearest in up to three dimensions, bilinear in two, and the gradients. A thread computes one
// element of the result, with the bits of the CPU kernel. The thread of a gradient looks for the results that show its element.
#pragma once

#include <tapedeck/kernels/attrs/interpolate.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cuda/convolution/planes.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace pooling {

using namespace convolution;

// `small` are the planes of the image, `large` those of the resampled image, which may have fewer elements nevertheless.
struct ResampleArgs {
  Planes small, large;
  std::int64_t n, small_plane, large_plane;
  int in[3], out[3];
  bool align_corners;
};

// nearest(): the element of the `in` elements that result element i of `out` shows. first_shown(): the first result element
// that shows element s.
TAPEDECK_DEVICE std::int64_t nearest(std::int64_t i, std::int64_t in, std::int64_t out) { return i * in / out; }
TAPEDECK_DEVICE std::int64_t first_shown(std::int64_t s, std::int64_t in, std::int64_t out) { return (s * out + in - 1) / in; }

// U is an unsigned integer as wide as an element.
template <class U>
TAPEDECK_KERNEL void nearest_kernel(const ResampleArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.large_plane, p.out);
    const std::int64_t d = nearest(e.d, p.in[0], p.out[0]), h = nearest(e.h, p.in[1], p.out[1]);
    const std::int64_t at = (d * p.in[1] + h) * p.in[2] + nearest(e.w, p.in[2], p.out[2]);
    p.large.plane<U>(e.plane).set(e.at, p.small.plane<U>(e.plane)[at]);
  }
}

template <class T>
TAPEDECK_KERNEL void nearest_grad_kernel(const ResampleArgs p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.small_plane, p.in);
    const Plane<T> dy = p.large.plane<T>(e.plane);
    const int at[3] = {e.d, e.h, e.w};
    std::int64_t first[3], last[3];
    for (int k = 0; k < 3; ++k) {
      first[k] = first_shown(at[k], p.in[k], p.out[k]);
      last[k] = first_shown(at[k] + 1, p.in[k], p.out[k]);
    }
    Value<T> sum = 0;
    for (std::int64_t d = first[0]; d < last[0]; ++d)
      for (std::int64_t h = first[1]; h < last[1]; ++h)
        for (std::int64_t w = first[2]; w < last[2]; ++w) sum += dy[(d * p.out[1] + h) * p.out[2] + w];
    p.small.plane<T>(e.plane).set(e.at, sum);
  }
}

// ---- bilinear ----

// The place of result element i between two elements; bilinear_tap() of kernels/attrs/interpolate.h on the device.
struct Between {
  int low, high;
  double part;
};
TAPEDECK_DEVICE Between between(int i, int in, int out, bool align_corners) {
  double place = align_corners
                     ? (out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
                     : (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
  place = place < 0 ? 0 : place > static_cast<double>(in - 1) ? static_cast<double>(in - 1) : place;
  const int low = static_cast<int>(place);
  return {low, low + 1 < in ? low + 1 : low, place - low};
}

template <class T>
TAPEDECK_KERNEL void bilinear_kernel(const ResampleArgs p) {
  using R = Value<T>;
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.large_plane, p.out);
    const Between v = between(e.h, p.in[1], p.out[1], p.align_corners), h = between(e.w, p.in[2], p.out[2], p.align_corners);
    const Plane<T> x = p.small.plane<T>(e.plane);
    const Plane<T> upper = x.from(static_cast<std::int64_t>(v.low) * p.in[2]);
    const Plane<T> lower = x.from(static_cast<std::int64_t>(v.high) * p.in[2]);
    const R right = static_cast<R>(h.part), down = static_cast<R>(v.part);
    const R top = upper[h.low] * (R(1) - right) + upper[h.high] * right;
    const R bottom = lower[h.low] * (R(1) - right) + lower[h.high] * right;
    p.large.plane<T>(e.plane).set(e.at, top * (R(1) - down) + bottom * down);
  }
}

// The result elements whose `low` is at least `least`, or whose `high` is: the first of them, or `out` if there is none. Both
// rise with the number of the element, so that halving the range finds it.
TAPEDECK_DEVICE int first_between(int least, bool by_high, int in, int out, bool align_corners) {
  int first = 0, end = out;
  while (first < end) {
    const int middle = first + (end - first) / 2;
    const Between b = between(middle, in, out, align_corners);
    if ((by_high ? b.high : b.low) >= least)
      end = middle;
    else
      first = middle + 1;
  }
  return first;
}

// Adds the four products of each result element in the order of the CPU kernel.
template <class T>
TAPEDECK_KERNEL void bilinear_grad_kernel(const ResampleArgs p) {
  using R = Value<T>;
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    const Element e = element_of(i, p.small_plane, p.in);
    const Plane<T> dy = p.large.plane<T>(e.plane);
    const int first_row = first_between(e.h, true, p.in[1], p.out[1], p.align_corners);
    const int end_row = first_between(e.h + 1, false, p.in[1], p.out[1], p.align_corners);
    const int first = first_between(e.w, true, p.in[2], p.out[2], p.align_corners);
    const int end = first_between(e.w + 1, false, p.in[2], p.out[2], p.align_corners);
    R sum = 0;
    for (int row = first_row; row < end_row; ++row) {
      const Between v = between(row, p.in[1], p.out[1], p.align_corners);
      const R down = static_cast<R>(v.part);
      for (int column = first; column < end; ++column) {
        const Between h = between(column, p.in[2], p.out[2], p.align_corners);
        const R right = static_cast<R>(h.part), x = dy[static_cast<std::int64_t>(row) * p.out[2] + column];
        const R top = x * (R(1) - down), bottom = x * down;
        if (v.low == e.h && h.low == e.w) sum += top * (R(1) - right);
        if (v.low == e.h && h.high == e.w) sum += top * right;
        if (v.high == e.h && h.low == e.w) sum += bottom * (R(1) - right);
        if (v.high == e.h && h.high == e.w) sum += bottom * right;
      }
    }
    p.small.plane<T>(e.plane).set(e.at, sum);
  }
}

// ---- the host ----

inline ResampleArgs resample_args(const KernelCall& call, const View& small, const View& large) {
  ResampleArgs p{};
  p.n = call.outputs[0].numel();
  p.small = planes_of(small), p.large = planes_of(large);
  p.small_plane = p.small.plane_size, p.large_plane = p.large.plane_size;
  set_sizes(p.in, small), set_sizes(p.out, large);
  return p;
}

}  // namespace pooling

// ---- the ops ----

using namespace pooling;

void interpolate_nearest(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const ResampleArgs p = resample_args(call, x, y);
  for_element_widths(y.dtype, [&](auto u) { launch(call, &nearest_kernel<decltype(u)>, for_items(p.n), p); });
}

void interpolate_nearest_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const ResampleArgs p = resample_args(call, dx, dy);
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &nearest_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

void interpolate_bilinear(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  ResampleArgs p = resample_args(call, x, y);
  p.align_corners = call.attributes<InterpolateBilinearAttrs>().align_corners;
  for_reals(call, y.dtype, [&](auto t) { launch(call, &bilinear_kernel<decltype(t)>, for_items(p.n), p); });
}

void interpolate_bilinear_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  ResampleArgs p = resample_args(call, dx, dy);
  p.align_corners = call.attributes<InterpolateBilinearAttrs>().align_corners;
  for_reals(call, dx.dtype, [&](auto t) { launch(call, &bilinear_grad_kernel<decltype(t)>, for_items(p.n), p); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
