// max_pool2d over NCHW without padding, and its gradient, which goes to the first maximum of each window in row-major order.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

struct Pool {
  std::int64_t planes, height, width, out_height, out_width;
  std::int64_t window_height, window_width, stride_height, stride_width;

  Pool(const View& x, const PoolAttrs& attrs)
      : planes(x.sizes[0] * x.sizes[1]),
        height(x.sizes[2]),
        width(x.sizes[3]),
        out_height((height - attrs.window[0]) / attrs.stride[0] + 1),
        out_width((width - attrs.window[1]) / attrs.stride[1] + 1),
        window_height(attrs.window[0]),
        window_width(attrs.window[1]),
        stride_height(attrs.stride[0]),
        stride_width(attrs.stride[1]) {}

  std::int64_t grain() const {
    return grain_for(static_cast<double>(out_height * out_width * window_height * window_width) + 5);
  }
};

// The window and its step to the right; 2 x 2 by 2, the usual one, is known to the compiler.
template <int kSize>
struct Window {
  const Pool& p;
  std::int64_t height() const { return kSize ? kSize : p.window_height; }
  std::int64_t width() const { return kSize ? kSize : p.window_width; }
  std::int64_t stride() const { return kSize ? kSize : p.stride_width; }
};

// Position from `corner` of the first maximum; the first NaN counts as one. Selects, since maxima in real data defeat branch
// prediction.
template <class T, class W>
std::int64_t first_maximum(const W& window, const T* corner) {
  std::int64_t best = 0;
  T top = corner[0];
  for (std::int64_t i = 0; i < window.height(); ++i)
    for (std::int64_t j = 0; j < window.width(); ++j) {
      const std::int64_t at = i * window.p.width + j;
      const T x = corner[at];
      const bool better = (x > top) | ((x != x) & (top == top));
      best = better ? at : best;
      top = better ? x : top;
    }
  return best;
}

template <class T, class W>
T maximum_of(const W& window, const T* corner) {
  T top = corner[0];
  for (std::int64_t i = 0; i < window.height(); ++i)
    for (std::int64_t j = 0; j < window.width(); ++j) {
      const T x = corner[i * window.p.width + j];
      top = ((x > top) | ((x != x) & (top == top))) ? x : top;
    }
  return top;
}

template <class T, class W>
void pool_planes(const KernelCall& call, const Pool& p, const W& window) {
  parallel_for(p.planes, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    const T* x = call.inputs[0].as<T>() + begin * p.height * p.width;
    T* y = call.outputs[0].as<T>() + begin * p.out_height * p.out_width;
    for (std::int64_t plane = begin; plane < end; ++plane, x += p.height * p.width)
      for (std::int64_t row = 0; row < p.out_height; ++row, y += p.out_width) {
        const T* from = x + row * p.stride_height * p.width;
        TAPEDECK_INDEPENDENT
        for (std::int64_t col = 0; col < p.out_width; ++col) y[col] = maximum_of(window, from + col * window.stride());
      }
  });
}

template <class T, class W>
void pool_grad_planes(const KernelCall& call, const Pool& p, const W& window) {
  parallel_for(p.planes, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* x = call.inputs[0].as<T>() + plane * p.height * p.width;
      const T* dy = call.inputs[1].as<T>() + plane * p.out_height * p.out_width;
      T* dx = call.outputs[0].as<T>() + plane * p.height * p.width;
      std::fill(dx, dx + p.height * p.width, T(0));
      for (std::int64_t row = 0; row < p.out_height; ++row)
        for (std::int64_t col = 0; col < p.out_width; ++col) {
          const std::int64_t corner = row * p.stride_height * p.width + col * window.stride();
          dx[corner + first_maximum(window, x + corner)] += *dy++;
        }
    }
  });
}

bool is_usual(const Pool& p) { return p.window_height == 2 && p.window_width == 2 && p.stride_width == 2; }

}  // namespace

void max_pool2d(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  const Pool p(call.inputs[0], call.attributes<PoolAttrs>());
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (is_usual(p))
      pool_planes<T>(call, p, Window<2>{p});
    else
      pool_planes<T>(call, p, Window<0>{p});
  });
}

void max_pool2d_grad(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  const Pool p(call.inputs[0], call.attributes<PoolAttrs>());
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (is_usual(p))
      pool_grad_planes<T>(call, p, Window<2>{p});
    else
      pool_grad_planes<T>(call, p, Window<0>{p});
  });
}

}  // namespace tapedeck::kernels::cpu
