// Windows over two or three spatial dimensions, shared by the pooling kernels.
#pragma once

#include <tapedeck/kernels/attrs/pool.h>
#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/images.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {

// The stride of a pool along dimension i. An empty `stride` means the window.
inline std::int64_t pool_stride(const Ints& stride, const Ints& window, int i) {
  return item(stride.size ? stride : window, i);
}

// The windows of a pool over [n,c,spatial]. Along a dimension, tap k of output o reads element o * stride + k * dilation - pad.
struct Pool {
  std::int64_t planes = 0;
  Spatial in = {1, 1, 1}, out = {1, 1, 1}, window = {1, 1, 1}, stride = {1, 1, 1}, pad = {0, 0, 0}, dilation = {1, 1, 1};

  std::int64_t in_plane() const { return volume(in); }
  std::int64_t out_plane() const { return volume(out); }
  std::int64_t out_rows() const { return out[0] * out[1]; }
  std::int64_t taps() const { return volume(window); }
  std::int64_t position(std::size_t dim, std::int64_t o, std::int64_t k) const {
    return o * stride[dim] + k * dilation[dim] - pad[dim];
  }
  bool inside(std::size_t dim, std::int64_t at) const { return at >= 0 && at < in[dim]; }
  // True for the most common pool: windows of 2 x 2 at stride 2, all inside the image.
  bool usual() const {
    return in[0] == 1 && window == Spatial{1, 2, 2} && stride[1] == 2 && stride[2] == 2 && pad == Spatial{} &&
           dilation[1] == 1 && dilation[2] == 1 && 2 * out[1] <= in[1] && 2 * out[2] <= in[2];
  }
};

// Makes a Pool from x, the pooled images, and y, the result.
template <class Attrs>
Pool make_pool(const View& x, const View& y, const Attrs& attrs) {
  Pool p;
  p.planes = x.sizes[0] * x.sizes[1];
  const int dims = x.rank - 2;
  for (int i = 0; i < dims; ++i) {
    const auto at = static_cast<std::size_t>(3 - dims + i);
    p.in[at] = x.sizes[2 + i], p.out[at] = y.sizes[2 + i];
    p.window[at] = item(attrs.window, i), p.stride[at] = pool_stride(attrs.stride, attrs.window, i),
    p.pad[at] = item(attrs.padding, i);
    if constexpr (requires { attrs.dilation; }) p.dilation[at] = item(attrs.dilation, i);
  }
  return p;
}

// A piece of one row of results. A row is walked in pieces of at most kPoolPart results, which fit into arrays on the stack.
struct PoolRow {
  std::int64_t depth, row, begin, end;
  std::int64_t size() const { return end - begin; }
};
inline constexpr std::int64_t kPoolPart = 128;

// Calls f(tap, input offset, first, last) for every tap in row-major order. The results [first, last) of the piece read
// elements inside the image at this tap: the first at `input offset` in the plane, the next each stride[2] further.
template <class F>
void for_taps(const Pool& p, const PoolRow& part, F&& f) {
  for (std::int64_t kd = 0; kd < p.window[0]; ++kd) {
    const std::int64_t d = p.position(0, part.depth, kd);
    if (!p.inside(0, d)) continue;
    for (std::int64_t kh = 0; kh < p.window[1]; ++kh) {
      const std::int64_t h = p.position(1, part.row, kh);
      if (!p.inside(1, h)) continue;
      for (std::int64_t kw = 0; kw < p.window[2]; ++kw) {
        const std::int64_t w = p.position(2, part.begin, kw), stride = p.stride[2];
        const std::int64_t first = w < 0 ? (stride - 1 - w) / stride : 0;
        const std::int64_t last = w >= p.in[2] ? 0 : std::min(part.size(), (p.in[2] - 1 - w) / stride + 1);
        if (first < last)
          f((kd * p.window[1] + kh) * p.window[2] + kw, (d * p.in[1] + h) * p.in[2] + w + first * stride, first, last);
      }
    }
  }
}

// Calls f(plane, piece, offset of its first result in the plane) for all pieces of the result rows [begin, end). Rows are
// counted through all planes.
template <class F>
void for_parts(const Pool& p, std::int64_t begin, std::int64_t end, F&& f) {
  for (std::int64_t job = begin; job < end; ++job) {
    const std::int64_t row = job % p.out_rows();
    for (std::int64_t col = 0; col < p.out[2]; col += kPoolPart)
      f(job / p.out_rows(), PoolRow{row / p.out[1], row % p.out[1], col, std::min(p.out[2], col + kPoolPart)},
        row * p.out[2] + col);
  }
}

// Calls g(stride), with strides 1 and 2 as constants, so that the compiler vectorises these loops.
template <class G>
void with_stride(std::int64_t stride, G&& g) {
  if (stride == 1) return g(std::integral_constant<std::int64_t, 1>{});
  if (stride == 2) return g(std::integral_constant<std::int64_t, 2>{});
  g(stride);
}

}  // namespace tapedeck::kernels::cpu
