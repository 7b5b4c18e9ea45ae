// Convolution of small maps as one product with the matrix of the whole map. A result of an image is a sum over all elements of
// the image, each times the weight whose tap lies between their pixels, or 0 if there is none:
//
//     matrix [out channel, out pixel][in channel, in pixel]
//
//     forward       y = x matrix^T        after the matrix is written from the weights
//     input_grad    dx = dy matrix        the same
//     weight_grad   matrix = dy^T x       then each weight sums its elements of the matrix, over ascending out pixels
//
// A map of fewer pixels than the window has taps needs fewer products this way, and one large product fills the device where
// the engines of cuDNN do not. Example: 2 x 2 pixels under a window of 3 x 3 with padding are 16 pairs of pixels, and 36 taps.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/products/lt_product.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace convolution {

inline constexpr std::int64_t kMostMapMatrix = 1 << 24, kLeastMapImages = 16;

// `n` counts the elements of the result of a kernel.
struct MapArgs {
  const void* from;
  void* to;
  int n, in_channels, in_plane, out_plane, taps;
  int in[3], out[3], kernel[3], stride[3], dilation[3], before[3];
};

// The tap that lies over an in pixel when the window stands at an out pixel, or -1.
TAPEDECK_DEVICE int tap_between(const MapArgs& s, int in_pixel, int out_pixel) {
  int tap = 0, scale = 1;
  for (int d = 2; d >= 0; --d) {
    const int at = in_pixel % s.in[d] + s.before[d] - out_pixel % s.out[d] * s.stride[d];
    if (at < 0 || at % s.dilation[d] != 0 || at / s.dilation[d] >= s.kernel[d]) return -1;
    tap += at / s.dilation[d] * scale;
    scale *= s.kernel[d], in_pixel /= s.in[d], out_pixel /= s.out[d];
  }
  return tap;
}

// The in pixel under a tap when the window stands at an out pixel, or -1 in the padding.
TAPEDECK_DEVICE int pixel_under(const MapArgs& s, int tap, int out_pixel) {
  int pixel = 0, scale = 1;
  for (int d = 2; d >= 0; --d) {
    const int at = out_pixel % s.out[d] * s.stride[d] + tap % s.kernel[d] * s.dilation[d] - s.before[d];
    if (at < 0 || at >= s.in[d]) return -1;
    pixel += at * scale;
    scale *= s.in[d], tap /= s.kernel[d], out_pixel /= s.out[d];
  }
  return pixel;
}

// U is an unsigned integer as wide as an element.
template <class U>
TAPEDECK_KERNEL void write_map_matrix(const MapArgs s) {
  const int columns = s.in_channels * s.in_plane;
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) {
    const int row = static_cast<int>(i) / columns, column = static_cast<int>(i) % columns;
    const int out_channel = row / s.out_plane, in_channel = column / s.in_plane;
    const int tap = tap_between(s, column % s.in_plane, row % s.out_plane);
    const std::int64_t weight = (static_cast<std::int64_t>(out_channel) * s.in_channels + in_channel) * s.taps + tap;
    static_cast<U*>(s.to)[i] = tap < 0 ? U(0) : static_cast<const U*>(s.from)[weight];
  }
}

template <class T>
TAPEDECK_KERNEL void sum_map_matrix(const MapArgs s) {
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) {
    const int tap = static_cast<int>(i) % s.taps, pair = static_cast<int>(i) / s.taps;
    const int out_channel = pair / s.in_channels, in_channel = pair % s.in_channels;
    Compute<T> sum = 0;
    for (int o = 0; o < s.out_plane; ++o) {
      const int pixel = pixel_under(s, tap, o);
      const std::int64_t row = static_cast<std::int64_t>(out_channel) * s.out_plane + o;
      if (pixel >= 0) sum += read(static_cast<const T*>(s.from)[(row * s.in_channels + in_channel) * s.in_plane + pixel]);
    }
    static_cast<T*>(s.to)[i] = written<T>(sum);
  }
}

// A pass of a convolution by the matrix of its map. x, w and y are the operands or their gradients.
struct MapCall {
  cpu::ConvPass pass;
  const cpu::ConvShape* shape;
  cpu::ConvStrides strides;
  DType dtype;
  void *x, *w, *y;
};

// True where the matrix is expected to win, and the result is as dense as a product must be. Sums of rounded halves would be
// rounded twice.
inline bool suits_map_matrix(const MapCall& c) {
  const cpu::ConvShape& s = *c.shape;
  if (s.empty() || s.groups != 1 || s.batch < kLeastMapImages || s.in_plane() >= s.taps()) return false;
  if (c.dtype == DType::f64 || (is_half(c.dtype) && c.pass == cpu::ConvPass::weight_grad)) return false;
  if (c.pass == cpu::ConvPass::forward && c.strides.out != s.out_size()) return false;
  if (c.pass == cpu::ConvPass::input_grad && c.strides.in != s.in_size()) return false;
  return s.weight_size() <= kMostMapMatrix && s.in_size() <= kMostMapMatrix && s.out_size() <= kMostMapMatrix &&
         s.in_size() * s.out_size() <= kMostMapMatrix;
}

inline std::int64_t map_matrix_bytes(const MapCall& c) {
  return (c.shape->in_size() * c.shape->out_size() * static_cast<std::int64_t>(dtype_size(c.dtype)) + 255) / 256 * 256;
}

inline MapArgs map_args(const MapCall& c, void* matrix) {
  const cpu::ConvShape& s = *c.shape;
  MapArgs a{};
  const bool sums = c.pass == cpu::ConvPass::weight_grad;
  a.from = sums ? matrix : c.w, a.to = sums ? c.w : matrix;
  a.n = static_cast<int>(sums ? s.weight_size() : s.in_size() * s.out_size());
  a.in_channels = static_cast<int>(s.in_channels), a.in_plane = static_cast<int>(s.in_plane());
  a.out_plane = static_cast<int>(s.out_plane()), a.taps = static_cast<int>(s.taps());
  for (std::size_t i = 0; i < 3; ++i) {
    a.in[i] = static_cast<int>(s.in[i]), a.out[i] = static_cast<int>(s.out(i)), a.kernel[i] = static_cast<int>(s.kernel[i]);
    a.stride[i] = static_cast<int>(s.stride[i]), a.dilation[i] = static_cast<int>(s.dilation[i]);
    a.before[i] = static_cast<int>(s.before[i]);
  }
  return a;
}

inline Product map_product(const MapCall& c, void* matrix) {
  const std::int64_t in = c.shape->in_size(), out = c.shape->out_size(), batch = c.shape->batch;
  Product p;
  p.dtype = c.dtype, p.element_bytes = static_cast<std::int64_t>(dtype_size(c.dtype));
  const auto set = [&](std::int64_t m, std::int64_t n, std::int64_t k, const MatrixBatch& a, const MatrixBatch& b, void* to) {
    p.m = m, p.n = n, p.k = k, p.a = a, p.b = b, p.out = to;
  };
  if (c.pass == cpu::ConvPass::forward)
    set(batch, out, in, {c.x, c.strides.in, 1, {}}, {matrix, 1, in, {}}, c.y);
  else if (c.pass == cpu::ConvPass::input_grad)
    set(batch, in, out, {c.y, c.strides.out, 1, {}}, {matrix, in, 1, {}}, c.x);
  else
    set(out, in, batch, {c.y, 1, c.strides.out, {}}, {c.x, c.strides.in, 1, {}}, matrix);
  return p;
}

inline int map_device() {
  int device = 0;
#ifdef __CUDACC__
  cudaGetDevice(&device);
#endif
  return device;
}

// The bytes of workspace: the matrix, then that of the product. -1 if the pass is computed in another way.
inline std::int64_t map_matrix_workspace(const MapCall& c) {
  const std::int64_t product = suits_map_matrix(c) ? cuda::lt_workspace(map_product(c, nullptr), map_device()) : 0;
  return product > 0 ? map_matrix_bytes(c) + product : -1;
}

inline void write_map_matrix_of(const KernelCall& call, const MapCall& c, void* matrix) {
  const MapArgs args = map_args(c, matrix);
  for_element_widths(c.dtype, [&](auto u) { launch(call, &write_map_matrix<decltype(u)>, for_items(args.n), args); });
}

inline void sum_map_matrix_of(const KernelCall& call, const MapCall& c, void* matrix) {
  const MapArgs args = map_args(c, matrix);
  for_floats(call, c.dtype, [&](auto t) { launch(call, &sum_map_matrix<decltype(t)>, for_items(args.n), args); });
}

// Returns false, with the result unwritten or to be overwritten, if another way must compute the pass.
inline bool convolve_by_map_matrix(const KernelCall& call, const MapCall& c) {
  const std::int64_t wanted = map_matrix_workspace(c), matrix_bytes = wanted < 0 ? 0 : map_matrix_bytes(c);
  if (wanted < 0 || static_cast<std::int64_t>(call.workspace_bytes) < wanted) return false;
  char* const rest = static_cast<char*>(call.workspace) + matrix_bytes;
  const bool writes = c.pass != cpu::ConvPass::weight_grad;
  if (writes) write_map_matrix_of(call, c, call.workspace);
  const cuda::LtDone done = cuda::lt_multiply(map_product(c, call.workspace), map_device(), rest,
                                              static_cast<std::size_t>(wanted - matrix_bytes), call.stream);
  if (done != cuda::LtDone::everything) return false;
  if (!writes) sum_map_matrix_of(call, c, call.workspace);
  return true;
}

}  // namespace convolution
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
