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
      : planes(x.sizes[0] * x.sizes[1]), height(x.sizes[2]), width(x.sizes[3]),
        out_height((height - attrs.window[0]) / attrs.stride[0] + 1), out_width((width - attrs.window[1]) / attrs.stride[1] + 1),
        window_height(attrs.window[0]), window_width(attrs.window[1]), stride_height(attrs.stride[0]), stride_width(attrs.stride[1]) {}

  std::int64_t grain() const {
    return grain_for(static_cast<double>(out_height * out_width * window_height * window_width) + 5);
  }
};

// Position in the plane of the first maximum of window (row, col); the first NaN counts as one. Selects, since ties and maxima in
// real data defeat branch prediction.
template <class T>
std::int64_t first_maximum(const Pool& p, const T* plane, std::int64_t row, std::int64_t col) {
  const std::int64_t corner = row * p.stride_height * p.width + col * p.stride_width;
  std::int64_t best = corner;
  T top = plane[corner];
  for (std::int64_t i = 0; i < p.window_height; ++i)
    for (std::int64_t j = 0; j < p.window_width; ++j) {
      const std::int64_t at = corner + i * p.width + j;
      const T x = plane[at];
      const bool better = (x > top) | ((x != x) & (top == top));
      best += (at - best) * better;
      top = better ? x : top;
    }
  return best;
}

template <class T>
void pool_of(const KernelCall& call) {
  const Pool p(call.inputs[0], call.attributes<PoolAttrs>());
  parallel_for(p.planes, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* x = call.inputs[0].as<T>() + plane * p.height * p.width;
      T* y = call.outputs[0].as<T>() + plane * p.out_height * p.out_width;
      for (std::int64_t row = 0; row < p.out_height; ++row)
        for (std::int64_t col = 0; col < p.out_width; ++col) *y++ = x[first_maximum(p, x, row, col)];
    }
  });
}

template <class T>
void pool_grad_of(const KernelCall& call) {
  const Pool p(call.inputs[0], call.attributes<PoolAttrs>());
  parallel_for(p.planes, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* x = call.inputs[0].as<T>() + plane * p.height * p.width;
      const T* dy = call.inputs[1].as<T>() + plane * p.out_height * p.out_width;
      T* dx = call.outputs[0].as<T>() + plane * p.height * p.width;
      std::fill(dx, dx + p.height * p.width, T(0));
      for (std::int64_t row = 0; row < p.out_height; ++row)
        for (std::int64_t col = 0; col < p.out_width; ++col) dx[first_maximum(p, x, row, col)] += *dy++;
    }
  });
}

}  // namespace

void max_pool2d(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { pool_of<decltype(t)>(call); });
}

void max_pool2d_grad(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { pool_grad_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
