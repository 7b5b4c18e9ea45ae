// Adaptive pooling, mean and maximum, and the gradients. The size of the result is given: along a dimension of `in` elements,
// output o of `out` covers the elements from floor(o in / out) to ceil((o + 1) in / out). The index of a maximum is the number
// of the element in its plane.
#include <tapedeck/kernels/attrs/pool.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

struct Planes {
  std::int64_t planes, height, width, out_height, out_width;

  Planes(const View& x, const View& y)
      : planes(x.sizes[0] * x.sizes[1]), height(x.sizes[2]), width(x.sizes[3]), out_height(y.sizes[2]), out_width(y.sizes[3]) {}
  std::int64_t in() const { return height * width; }
  std::int64_t out() const { return out_height * out_width; }
  std::int64_t grain() const { return grain_for(static_cast<double>(in() + 4 * out()) + 5); }
};

struct Window {
  std::int64_t top, bottom, left, right;
  std::int64_t size() const { return (bottom - top) * (right - left); }
};

// Calls f(window, result) for every result of a plane.
template <class F>
void for_windows(const Planes& p, F&& f) {
  for (std::int64_t r = 0; r < p.out_height; ++r)
    for (std::int64_t c = 0; c < p.out_width; ++c)
      f(Window{r * p.height / p.out_height, ((r + 1) * p.height + p.out_height - 1) / p.out_height, c * p.width / p.out_width,
               ((c + 1) * p.width + p.out_width - 1) / p.out_width},
        r * p.out_width + c);
}

template <class T>
T window_sum(const Planes& p, const Window& w, const T* x) {
  T total = 0;
  for (std::int64_t r = w.top; r < w.bottom; ++r) {
    T part = 0;
    for (std::int64_t c = w.left; c < w.right; ++c) part += x[r * p.width + c];
    total += part;
  }
  return total;
}

template <class T>
std::int64_t first_maximum(const Planes& p, const Window& w, const T* x) {
  std::int64_t best = w.top * p.width + w.left;
  for (std::int64_t r = w.top; r < w.bottom; ++r)
    for (std::int64_t c = w.left; c < w.right; ++c) {
      const T a = x[r * p.width + c], top = x[best];
      best = ((a > top) | ((a != a) & (top == top))) ? r * p.width + c : best;
    }
  return best;
}

// Calls f(plane of x, plane of y, plane number) for all planes. One task owns a plane.
template <class X, class Y, class F>
void for_planes(const Planes& p, const Images<X>& x, const Images<Y>& y, F&& f) {
  parallel_for(p.planes, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(x.plane(i), y.plane(i), i);
  });
}

template <class T, class Y, class F>
void pool(const Planes& p, const Images<T>& x, const Images<Y>& y, F&& of_window) {
  for_planes(p, x, y, [&](const T* from, Y* to, std::int64_t) {
    for_windows(p, [&](const Window& w, std::int64_t i) { to[i] = of_window(w, from); });
  });
}

bool is_inside(const KernelCall& call, const Planes& p, std::int32_t index) {
  if (index >= 0 && index < p.in()) return true;
  call.fault->report("index outside the plane", index);
  return false;
}

}  // namespace

void adaptive_avg_pool2d(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Planes p(x, y);
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    pool(p, Images<T>(x), Images<T>(y),
         [&](const Window& w, const T* from) { return window_sum(p, w, from) / static_cast<T>(w.size()); });
  });
}

void adaptive_avg_pool2d_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const Planes p(dx, dy);
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    for_planes(p, Images<T>(dy), Images<T>(dx), [&](const T* from, T* to, std::int64_t) {
      std::fill(to, to + p.in(), T(0));
      for_windows(p, [&](const Window& w, std::int64_t i) {
        const T share = from[i] / static_cast<T>(w.size());
        for (std::int64_t r = w.top; r < w.bottom; ++r)
          for (std::int64_t c = w.left; c < w.right; ++c) to[r * p.width + c] += share;
      });
    });
  });
}

void adaptive_max_pool2d(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Planes p(x, y);
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    pool(p, Images<T>(x), Images<T>(y), [&](const Window& w, const T* from) { return from[first_maximum(p, w, from)]; });
  });
}

void adaptive_max_pool2d_index(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Planes p(x, y);
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    pool(p, Images<T>(x), Images<std::int32_t>(y),
         [&](const Window& w, const T* from) { return static_cast<std::int32_t>(first_maximum(p, w, from)); });
  });
}

void adaptive_max_pool2d_grad_from_index(const KernelCall& call) {
  const View &index = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const Planes p(dx, dy);
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    const Images<std::int32_t> indices(index);
    for_planes(p, Images<T>(dy), Images<T>(dx), [&](const T* from, T* to, std::int64_t plane) {
      const std::int32_t* at = indices.plane(plane);
      std::fill(to, to + p.in(), T(0));
      for (std::int64_t i = 0; i < p.out(); ++i)
        if (is_inside(call, p, at[i])) to[at[i]] += from[i];
    });
  });
}

void adaptive_max_pool2d_at_index(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Planes p(x, y);
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    const Images<std::int32_t> indices(index);
    for_planes(p, Images<T>(x), Images<T>(y), [&](const T* from, T* to, std::int64_t plane) {
      const std::int32_t* at = indices.plane(plane);
      for (std::int64_t i = 0; i < p.out(); ++i) to[i] = is_inside(call, p, at[i]) ? from[at[i]] : T(0);
    });
  });
}

}  // namespace tapedeck::kernels::cpu
