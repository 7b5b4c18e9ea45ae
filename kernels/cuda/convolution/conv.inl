// Convolution, its two gradients, in two and three dimensions: our own kernels, which need no library.
//
// Each pass is a matrix product out[row, column] = sum over k of a[row, k] b[k, column], one product for each group:
//
//       pass          row           column             k
//       forward       out channel   output pixel       (in channel, tap)
//       input_grad    in channel    input pixel        (out channel, tap)
//       weight_grad   out channel   (in channel, tap)  output pixel
//
// where a pixel counts through the images, and a tap is an element of the window. No matrix is stored. A block computes a tile
// of 64 x 64 results. For each of its 64 columns, and for each of the 16 steps of k at a time, it keeps a Place in shared
// memory: the offset and the coordinates that this pixel or this tap adds. An element of b then costs additions and
// comparisons, and no division. The gradient of the weights is split along k, where there are few tiles; a second kernel adds
// the parts in order. Groups of few channels would leave most of a tile empty, so direct kernels compute these with one thread
// (or block) a result.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/convolution/map_matrix.inl>
#ifdef __CUDACC__
#include <tapedeck/kernels/cuda/convolution/dnn_conv.h>
#include <tapedeck/kernels/cuda/runtime.h>
#endif

#include <cmath>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace convolution {

using cpu::ConvPass;
using cpu::ConvShape;

inline constexpr int kTile = 64;         // rows and columns of a tile
inline constexpr int kStep = 16;         // steps of k in shared memory at a time
inline constexpr int kSide = 4;          // a thread computes kSide x kSide results
inline constexpr int kAbsent = 1 << 29;  // a coordinate that lies outside of every image
inline constexpr std::int64_t kMaxImageSide = 1 << 28;
inline constexpr std::int64_t kWantedTiles = 256, kLeastDepth = 256, kMostDepth = 16384, kMostPartBytes = 64 << 20,
                              kMostParts = 4096;

// A convolution as the kernels read it. Sizes are {depth, height, width}.
struct ConvArgs {
  const void *first, *second;
  void* out;
  std::int64_t in_stride, out_stride;  // elements from one image to the next, of x and of y
  std::int64_t batch, in_plane, out_plane, taps, groups, in_per_group, out_per_group;
  int in[3], out_size[3], kernel[3], stride[3], dilation[3], before[3];
  std::int64_t rows, columns, depth;  // of the matrix product of one group
  std::int64_t row_tiles, column_tiles, split_depth;
};

// A pixel or a tap. `at` is the offset that it adds in the operand with the window; `own` is its offset in the other tensor
// that it indexes, or -1 beyond the end of the matrix.
struct Place {
  std::int64_t at, own;
  int d, h, w;
};

TAPEDECK_DEVICE Place absent_place(int coordinate) { return {0, -1, coordinate, 0, 0}; }

// ---- the places of pixels and taps ----

struct Coordinates {
  int d, h, w;
};
TAPEDECK_DEVICE Coordinates coordinates_of(std::int64_t at, const int (&size)[3]) {
  const unsigned i = static_cast<unsigned>(at), width = static_cast<unsigned>(size[2]), height = static_cast<unsigned>(size[1]);
  const unsigned row = i / width;
  return {static_cast<int>(row / height), static_cast<int>(row % height), static_cast<int>(i % width)};
}
TAPEDECK_DEVICE std::int64_t offset_in(const int (&size)[3], int d, int h, int w) {
  return (static_cast<std::int64_t>(d) * size[1] + h) * size[2] + w;
}

// An output pixel, and the element of x under the first tap of its window (which may lie in the padding).
TAPEDECK_DEVICE Place output_pixel(const ConvArgs& s, std::int64_t pixel) {
  const std::int64_t image = pixel / s.out_plane, rest = pixel % s.out_plane;
  const Coordinates o = coordinates_of(rest, s.out_size);
  const int d = o.d * s.stride[0] - s.before[0], h = o.h * s.stride[1] - s.before[1], w = o.w * s.stride[2] - s.before[2];
  return {image * s.in_stride + offset_in(s.in, d, h, w), image * s.out_stride + rest, d, h, w};
}

// An input pixel; its coordinates count from the start of the padding.
TAPEDECK_DEVICE Place input_pixel(const ConvArgs& s, std::int64_t pixel) {
  const std::int64_t image = pixel / s.in_plane, rest = pixel % s.in_plane;
  const Coordinates i = coordinates_of(rest, s.in);
  return {image * s.out_stride, image * s.in_stride + rest, i.d + s.before[0], i.h + s.before[1], i.w + s.before[2]};
}

// A tap of an in channel of the group: its distance from the first tap in x, and its place in the weights of an out channel.
TAPEDECK_DEVICE Place input_tap(const ConvArgs& s, std::int64_t k) {
  const Coordinates t = coordinates_of(k % s.taps, s.kernel);
  const int d = t.d * s.dilation[0], h = t.h * s.dilation[1], w = t.w * s.dilation[2];
  return {k / s.taps * s.in_plane + offset_in(s.in, d, h, w), k, d, h, w};
}

// A tap of an out channel of the group.
TAPEDECK_DEVICE Place output_tap(const ConvArgs& s, std::int64_t k) {
  const std::int64_t channel = k / s.taps, tap = k % s.taps;
  const Coordinates t = coordinates_of(tap, s.kernel);
  return {channel * s.out_plane, channel * s.in_per_group * s.taps + tap, t.d * s.dilation[0], t.h * s.dilation[1],
          t.w * s.dilation[2]};
}

template <ConvPass kPass>
TAPEDECK_DEVICE Place column_place(const ConvArgs& s, std::int64_t column) {
  if (column >= s.columns) return absent_place(-kAbsent);
  if constexpr (kPass == ConvPass::forward)
    return output_pixel(s, column);
  else if constexpr (kPass == ConvPass::input_grad)
    return input_pixel(s, column);
  else
    return input_tap(s, column);
}

template <ConvPass kPass>
TAPEDECK_DEVICE Place step_place(const ConvArgs& s, std::int64_t k, std::int64_t end) {
  if (k >= end) return absent_place(kPass == ConvPass::input_grad ? kAbsent : -kAbsent);
  if constexpr (kPass == ConvPass::forward)
    return input_tap(s, k);
  else if constexpr (kPass == ConvPass::input_grad)
    return output_tap(s, k);
  else
    return output_pixel(s, k);
}

// ---- elements of b ----

// The element of x under a tap of the window of an output pixel, or 0 in the padding.
template <class T>
TAPEDECK_DEVICE Compute<T> under_window(const ConvArgs& s, const T* x, const Place& a, const Place& b) {
  const bool inside = static_cast<unsigned>(a.d + b.d) < static_cast<unsigned>(s.in[0]) &&
                      static_cast<unsigned>(a.h + b.h) < static_cast<unsigned>(s.in[1]) &&
                      static_cast<unsigned>(a.w + b.w) < static_cast<unsigned>(s.in[2]);
  return inside ? read(x[a.at + b.at]) : Compute<T>(0);
}

// Divides a coordinate by the stride. The result is -1 if there is a remainder, or if the result lies outside.
TAPEDECK_DEVICE int output_coordinate(int at, int stride, int size) {
  if (at < 0) return -1;
  if (stride > 1) {
    if (at % stride != 0) return -1;
    at /= stride;
  }
  return at < size ? at : -1;
}

// The element of dy whose window has the given tap over an input pixel, or 0 if there is none.
template <class T>
TAPEDECK_DEVICE Compute<T> over_pixel(const ConvArgs& s, const T* dy, const Place& pixel, const Place& tap) {
  const int d = output_coordinate(pixel.d - tap.d, s.stride[0], s.out_size[0]);
  const int h = output_coordinate(pixel.h - tap.h, s.stride[1], s.out_size[1]);
  const int w = output_coordinate(pixel.w - tap.w, s.stride[2], s.out_size[2]);
  if ((d | h | w) < 0) return Compute<T>(0);
  return read(dy[pixel.at + tap.at + offset_in(s.out_size, d, h, w)]);
}

// ---- the tiles ----

// The offsets of the operands and the result of one group, and the distances of the rows of a and of the result.
struct GroupOffsets {
  std::int64_t a, b, out, a_row, out_row;
};
template <ConvPass kPass>
TAPEDECK_DEVICE GroupOffsets group_offsets(const ConvArgs& s, std::int64_t group) {
  const std::int64_t weights = group * s.out_per_group * s.in_per_group * s.taps;
  const std::int64_t in = group * s.in_per_group * s.in_plane, out = group * s.out_per_group * s.out_plane;
  if constexpr (kPass == ConvPass::forward)
    return {weights, in, out, s.in_per_group * s.taps, s.out_plane};
  else if constexpr (kPass == ConvPass::input_grad)
    return {weights, out, in, s.taps, s.in_plane};
  else
    return {out, in, weights, s.out_plane, s.in_per_group * s.taps};
}

// The operands a (rows and k) and b (the window) of a pass.
template <ConvPass kPass, class T>
TAPEDECK_DEVICE const T* operand_a(const ConvArgs& s) {
  return static_cast<const T*>(kPass == ConvPass::weight_grad ? s.first : s.second);
}
template <ConvPass kPass, class T>
TAPEDECK_DEVICE const T* operand_b(const ConvArgs& s) {
  return static_cast<const T*>(kPass == ConvPass::weight_grad ? s.second : s.first);
}

template <ConvPass kPass, class T>
TAPEDECK_DEVICE Compute<T> element_b(const ConvArgs& s, const T* b, const Place& column, const Place& step) {
  if constexpr (kPass == ConvPass::input_grad)
    return over_pixel(s, b, column, step);
  else
    return under_window(s, b, column, step);
}

// The elements of a and b that one thread brings into shared memory at each step: kSide of each. Neighbouring threads read
// neighbouring k of a. Of b they read neighbouring pixels, which are columns or, for the gradient of the weights, k.
template <ConvPass kPass>
struct Fetch {
  static constexpr bool kPixelSteps = kPass == ConvPass::weight_grad;
  TAPEDECK_DEVICE static int a_step() { return static_cast<int>(threadIdx.x % kStep); }
  TAPEDECK_DEVICE static int a_row(int i) { return static_cast<int>(threadIdx.x / kStep) + i * kStep; }
  TAPEDECK_DEVICE static int b_step(int i) {
    return static_cast<int>(kPixelSteps ? threadIdx.x % kStep : threadIdx.x / kTile + static_cast<unsigned>(i) * kSide);
  }
  TAPEDECK_DEVICE static int b_column(int i) {
    return static_cast<int>(kPixelSteps ? threadIdx.x / kStep + static_cast<unsigned>(i) * kStep : threadIdx.x % kTile);
  }
};
static_assert(kThreads == kStep * kStep && kTile == kStep * kSide && kThreads == kTile * kSide);

template <ConvPass kPass, class T>
TAPEDECK_KERNEL void conv_tile_kernel(const ConvArgs s) {
  using R = Compute<T>;
  using F = Fetch<kPass>;
  TAPEDECK_SHARED Place columns[kTile], steps[kStep];
  alignas(16) TAPEDECK_SHARED R tile_a[kStep][kTile + 4];
  alignas(16) TAPEDECK_SHARED R tile_b[kStep][kTile];

  const std::int64_t block = blockIdx.x;
  const std::int64_t first_row = block % s.row_tiles * kTile, rest = block / s.row_tiles;
  const std::int64_t first_column = rest % s.column_tiles * kTile;
  const GroupOffsets group = group_offsets<kPass>(s, rest / s.column_tiles);
  const T* const a = operand_a<kPass, T>(s) + group.a + first_row * group.a_row;
  const T* const b = operand_b<kPass, T>(s) + group.b;
  const std::int64_t begin = blockIdx.z * s.split_depth;
  const std::int64_t end = begin + s.split_depth < s.depth ? begin + s.split_depth : s.depth;
  const int thread = static_cast<int>(threadIdx.x),
            rows = static_cast<int>(s.rows - first_row < kTile ? s.rows - first_row : kTile);

  if (thread < kTile) columns[thread] = column_place<kPass>(s, first_column + thread);
  if (thread < kStep) steps[thread] = step_place<kPass>(s, begin + thread, end);
  sync_block();

  R next_a[kSide], next_b[kSide], sum[kSide][kSide] = {};
  const auto fetch = [&] {
    const std::int64_t own = steps[F::a_step()].own;
    for (int i = 0; i < kSide; ++i) {
      const int row = F::a_row(i);
      next_a[i] = own >= 0 && row < rows ? read(a[own + row * group.a_row]) : R(0);
      next_b[i] = element_b<kPass>(s, b, columns[F::b_column(i)], steps[F::b_step(i)]);
    }
  };
  fetch();
  const int left = thread % kStep, top = thread / kStep * kSide;
  for (std::int64_t k = begin; k < end; k += kStep) {
    sync_block();
    for (int i = 0; i < kSide; ++i) {
      tile_a[F::a_step()][F::a_row(i)] = next_a[i];
      tile_b[F::b_step(i)][F::b_column(i)] = next_b[i];
    }
    if (thread < kStep) steps[thread] = step_place<kPass>(s, k + kStep + thread, end);
    sync_block();
    fetch();  // of the next step, while this one is computed
    for (int step = 0; step < kStep; ++step) {
      R of_row[kSide], of_column[kSide];
      for (int i = 0; i < kSide; ++i) {
        of_row[i] = tile_a[step][top + i];
        of_column[i] = tile_b[step][left + i * kStep];
      }
      for (int i = 0; i < kSide; ++i)
        for (int j = 0; j < kSide; ++j) sum[i][j] = std::fma(of_row[i], of_column[j], sum[i][j]);
    }
  }

  const std::int64_t part = blockIdx.z * s.groups * s.rows * s.columns;  // 0 where the pass is not split
  const std::int64_t to = part + group.out + first_row * group.out_row;
  for (int j = 0; j < kSide; ++j) {
    const std::int64_t own = columns[left + j * kStep].own;
    if (own < 0) continue;
    for (int i = 0; i < kSide; ++i) {
      if (top + i >= rows) continue;
      const std::int64_t at = to + (top + i) * group.out_row + own;
      if (kPass == ConvPass::weight_grad && gridDim.z > 1)
        static_cast<R*>(s.out)[at] = sum[i][j];
      else
        static_cast<T*>(s.out)[at] = written<T>(sum[i][j]);
    }
  }
}

struct PartsArgs {
  const void* parts;
  void* out;
  std::int64_t n, count;  // the elements of the result, and the parts to add for each
};

template <class T>
TAPEDECK_KERNEL void add_parts_kernel(const PartsArgs s) {
  const auto* parts = static_cast<const Compute<T>*>(s.parts);
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) {
    Compute<T> sum = 0;
    for (std::int64_t part = 0; part < s.count; ++part) sum += parts[part * s.n + i];
    static_cast<T*>(s.out)[i] = written<T>(sum);
  }
}

// ---- direct kernels, for groups of few channels ----

// A thread computes one result: a pixel of a channel of an image.
template <class T>
TAPEDECK_KERNEL void direct_forward_kernel(const ConvArgs s) {
  const auto *x = static_cast<const T*>(s.first), *w = static_cast<const T*>(s.second);
  const std::int64_t channels = s.groups * s.out_per_group, n = s.batch * channels * s.out_plane;
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    const std::int64_t channel = i / s.out_plane % channels, image = i / s.out_plane / channels;
    const Place pixel = output_pixel(s, image * s.out_plane + i % s.out_plane);
    const T* const from = x + channel / s.out_per_group * s.in_per_group * s.in_plane;
    const T* weight = w + channel * s.in_per_group * s.taps;
    Compute<T> sum = 0;
    for (std::int64_t c = 0; c < s.in_per_group; ++c)
      for (int d = 0; d < s.kernel[0]; ++d)
        for (int h = 0; h < s.kernel[1]; ++h)
          for (int v = 0; v < s.kernel[2]; ++v) {
            const int to_d = d * s.dilation[0], to_h = h * s.dilation[1], to_w = v * s.dilation[2];
            const Place tap{c * s.in_plane + offset_in(s.in, to_d, to_h, to_w), 0, to_d, to_h, to_w};
            sum = std::fma(read(*weight++), under_window(s, from, pixel, tap), sum);
          }
    static_cast<T*>(s.out)[pixel.own + channel * s.out_plane] = written<T>(sum);
  }
}

template <class T>
TAPEDECK_KERNEL void direct_input_grad_kernel(const ConvArgs s) {
  const auto *dy = static_cast<const T*>(s.first), *w = static_cast<const T*>(s.second);
  const std::int64_t channels = s.groups * s.in_per_group, n = s.batch * channels * s.in_plane;
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    const std::int64_t channel = i / s.in_plane % channels, image = i / s.in_plane / channels;
    const Place pixel = input_pixel(s, image * s.in_plane + i % s.in_plane);
    const std::int64_t first = channel / s.in_per_group * s.out_per_group;
    Compute<T> sum = 0;
    for (std::int64_t c = 0; c < s.out_per_group; ++c) {
      const T* weight = w + ((first + c) * s.in_per_group + channel % s.in_per_group) * s.taps;
      for (int d = 0; d < s.kernel[0]; ++d)
        for (int h = 0; h < s.kernel[1]; ++h)
          for (int v = 0; v < s.kernel[2]; ++v) {
            const Place tap{(first + c) * s.out_plane, 0, d * s.dilation[0], h * s.dilation[1], v * s.dilation[2]};
            sum = std::fma(read(*weight++), over_pixel(s, dy, pixel, tap), sum);
          }
    }
    static_cast<T*>(s.out)[pixel.own + channel * s.in_plane] = written<T>(sum);
  }
}

// A block computes one weight: each thread adds every kThreads-th pixel, and a tree adds the threads.
template <class T>
TAPEDECK_KERNEL void direct_weight_grad_kernel(const ConvArgs s) {
  TAPEDECK_SHARED Compute<T> sums[kThreads];
  const auto *dy = static_cast<const T*>(s.first), *x = static_cast<const T*>(s.second);
  const std::int64_t columns = s.in_per_group * s.taps, weights = s.groups * s.out_per_group * columns;
  for (std::int64_t i = blockIdx.x; i < weights; i += gridDim.x) {
    const std::int64_t channel = i / columns;
    const Place tap = input_tap(s, i % columns);
    const T* const from = x + channel / s.out_per_group * s.in_per_group * s.in_plane;
    Compute<T> sum = 0;
    for (std::int64_t at = threadIdx.x; at < s.batch * s.out_plane; at += kThreads) {
      const Place pixel = output_pixel(s, at);
      sum = std::fma(read(dy[pixel.own + channel * s.out_plane]), under_window(s, from, pixel, tap), sum);
    }
    sums[threadIdx.x] = sum;
    sync_block();
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
      sync_block();
    }
    if (threadIdx.x == 0) static_cast<T*>(s.out)[i] = written<T>(sums[0]);
    sync_block();
  }
}

// ---- the host ----

// The call of one pass: the shape, and the views in the roles of the convolution.
struct ConvCall {
  ConvPass pass;
  ConvShape shape;
  const View *x, *w, *y;
};

template <class Attrs>
ConvCall conv_call(const KernelCall& call, ConvPass pass, int dims) {
  const View &first = call.inputs[0], &second = call.inputs[1], &out = call.outputs[0];
  ConvCall c{pass, {}, &first, &second, &out};
  if (pass == ConvPass::input_grad) c.x = &out, c.y = &first;
  if (pass == ConvPass::weight_grad) c.x = &second, c.w = &out, c.y = &first;
  c.shape = cpu::conv_shape(dims, c.x->sizes, c.w->sizes, call.attributes<Attrs>());
  return c;
}

inline std::int64_t tiles_of(std::int64_t n) { return (n + kTile - 1) / kTile; }

inline void set_product(ConvArgs& args, const ConvCall& c) {
  const std::int64_t taps = args.taps, in = args.in_per_group, out = args.out_per_group;
  const std::int64_t out_pixels = args.batch * args.out_plane;
  if (c.pass == ConvPass::forward) args.rows = out, args.columns = out_pixels, args.depth = in * taps;
  if (c.pass == ConvPass::input_grad) args.rows = in, args.columns = args.batch * args.in_plane, args.depth = out * taps;
  if (c.pass == ConvPass::weight_grad) args.rows = out, args.columns = in * taps, args.depth = out_pixels;
  if (c.shape.empty()) args.depth = 0;  // every result is an empty sum
  args.row_tiles = tiles_of(args.rows), args.column_tiles = tiles_of(args.columns), args.split_depth = args.depth;
}

inline ConvArgs conv_args(const KernelCall& call, const ConvCall& c) {
  const ConvShape& s = c.shape;
  ConvArgs args{};
  args.first = call.inputs[0].data, args.second = call.inputs[1].data, args.out = call.outputs[0].data;
  args.in_stride = cpu::image_stride(*c.x), args.out_stride = cpu::image_stride(*c.y);
  args.batch = s.batch, args.groups = s.empty() ? 1 : s.groups;
  args.in_per_group = s.in_channels / args.groups, args.out_per_group = s.out_channels / args.groups;
  args.in_plane = s.in_plane(), args.taps = s.taps(), args.out_plane = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) - (5 - c.y->rank);
    const std::int64_t out_size = at < 0 ? 1 : c.y->sizes[2 + at];
    args.in[i] = static_cast<int>(s.in[i]), args.out_size[i] = static_cast<int>(out_size);
    args.kernel[i] = static_cast<int>(s.kernel[i]), args.stride[i] = static_cast<int>(s.stride[i]);
    args.dilation[i] = static_cast<int>(s.dilation[i]), args.before[i] = static_cast<int>(s.before[i]);
    args.out_plane *= out_size;
  }
  set_product(args, c);
  return args;
}

// True if coordinates fit the 32 bits that the kernels give them.
inline bool fits_kernels(const ConvArgs& args, const ConvCall& c) {
  constexpr std::int64_t kMostPlane = (std::int64_t{1} << 32) - 1;
  bool fits = args.in_plane <= kMostPlane && args.out_plane <= kMostPlane && args.taps <= kMostPlane;
  for (std::size_t i = 0; i < 3; ++i) {
    const ConvShape& s = c.shape;
    fits = fits && s.in[i] + s.before[i] + s.after[i] + s.stride[i] < kMaxImageSide && s.kernel[i] < kMaxImageSide &&
           s.dilation[i] * s.kernel[i] < kMaxImageSide;
  }
  return fits && args.groups * args.row_tiles * args.column_tiles < (std::int64_t{1} << 31);
}

// Tiles would be mostly empty.
inline bool narrow(const ConvArgs& args) { return args.groups > 1 && args.rows < kTile / 4; }

// In how many parts the gradient of the weights is split: enough blocks to fill a device, and no sum too long for f32.
inline std::int64_t split_count(const ConvArgs& args, std::int64_t real_bytes) {
  const std::int64_t tiles = args.groups * args.row_tiles * args.column_tiles;
  const std::int64_t part_bytes = args.groups * args.rows * args.columns * real_bytes;
  if (tiles == 0 || args.depth == 0 || narrow(args)) return 1;
  const auto ceil_of = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t count = ceil_of(kWantedTiles, tiles);
  if (const std::int64_t least = ceil_of(args.depth, kMostDepth); count < least) count = least;
  if (const std::int64_t most = ceil_of(args.depth, kLeastDepth); count > most) count = most;
  if (const std::int64_t most = kMostPartBytes / part_bytes; count > most) count = most;
  if (count > kMostParts) count = kMostParts;
  return count < 1 ? 1 : count;
}

inline std::int64_t real_bytes(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

inline std::int64_t own_workspace(const KernelCall& call, const ConvCall& c) {
  if (c.pass != ConvPass::weight_grad) return 0;
  const ConvArgs args = conv_args(call, c);
  const std::int64_t bytes = real_bytes(call.outputs[0].dtype), count = split_count(args, bytes);
  return count > 1 ? count * args.groups * args.rows * args.columns * bytes : 0;
}

template <class T>
void convolve_narrow(const KernelCall& call, const ConvArgs& args, ConvPass pass) {
  const std::int64_t channels_in = args.groups * args.in_per_group, channels_out = args.groups * args.out_per_group;
  if (pass == ConvPass::forward)
    return launch(call, &direct_forward_kernel<T>, for_items(args.batch * channels_out * args.out_plane), args);
  if (pass == ConvPass::input_grad)
    return launch(call, &direct_input_grad_kernel<T>, for_items(args.batch * channels_in * args.in_plane), args);
  const std::int64_t weights = channels_out * args.in_per_group * args.taps;
  launch(call, &direct_weight_grad_kernel<T>, Launch{.blocks = weights < kMaxBlocks * 16 ? weights : kMaxBlocks * 16}, args);
}

template <class T>
void convolve_weight_tiles(const KernelCall& call, ConvArgs args) {
  const std::int64_t n = args.groups * args.rows * args.columns, wanted = split_count(args, sizeof(Compute<T>));
  args.split_depth = ((args.depth + wanted - 1) / wanted + kStep - 1) / kStep * kStep;
  std::int64_t count = args.depth > 0 ? (args.depth + args.split_depth - 1) / args.split_depth : 1;
  void* const result = args.out;
  if (static_cast<std::int64_t>(call.workspace_bytes / sizeof(Compute<T>)) < count * n) count = 1;
  if (count == 1)
    args.split_depth = args.depth;
  else
    args.out = call.workspace;
  launch(call, &conv_tile_kernel<ConvPass::weight_grad, T>,
         Launch{.blocks = args.groups * args.row_tiles * args.column_tiles, .blocks_z = static_cast<unsigned>(count)}, args);
  if (count > 1) launch(call, &add_parts_kernel<T>, for_items(n), PartsArgs{call.workspace, result, n, count});
}

inline void convolve_by_own_kernels(const KernelCall& call, const ConvCall& c) {
  const ConvArgs args = conv_args(call, c);
  if (!fits_kernels(args, c)) return call.fault->report("convolution too large for a device", args.in_plane);
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (narrow(args)) return convolve_narrow<T>(call, args, c.pass);
    const Launch tiles{.blocks = args.groups * args.row_tiles * args.column_tiles};
    if (c.pass == ConvPass::forward) return launch(call, &conv_tile_kernel<ConvPass::forward, T>, tiles, args);
    if (c.pass == ConvPass::input_grad) return launch(call, &conv_tile_kernel<ConvPass::input_grad, T>, tiles, args);
    convolve_weight_tiles<T>(call, args);
  });
}

// Groups of few channels stay with our own direct kernels.
#ifdef __CUDACC__
inline bool for_dnn(const KernelCall& call, const ConvCall& c, DnnConvolution& problem) {
  problem = {c.pass, c.shape,          {cpu::image_stride(*c.x), cpu::image_stride(*c.y)}, call.outputs[0].dtype, c.x->rank - 2,
             0,      tf32_is_allowed()};
  return cuda_status().available && dnn_is_wanted() && is_for_dnn(problem) && !narrow(conv_args(call, c)) &&
         cudaGetDevice(&problem.device) == cudaSuccess;
}

inline bool convolve_by_dnn(const KernelCall& call, const ConvCall& c) {
  DnnConvolution problem;
  if (!for_dnn(call, c, problem)) return false;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(static_cast<cudaStream_t>(call.stream), &capture);
  return dnn_convolutions().run(problem, {c.x->data, c.w->data, c.y->data, call.workspace, call.workspace_bytes, call.stream,
                                          capture == cudaStreamCaptureStatusNone});
}

inline std::int64_t workspace_of_dnn(const KernelCall& call, const ConvCall& c) {
  DnnConvolution problem;
  return for_dnn(call, c, problem) ? dnn_convolutions().workspace(problem) : -1;
}

inline bool libraries_are_wanted() { return cuda_status().available && dnn_is_wanted(); }
#else
inline bool convolve_by_dnn(const KernelCall&, const ConvCall&) { return false; }
inline std::int64_t workspace_of_dnn(const KernelCall&, const ConvCall&) { return -1; }
inline bool libraries_are_wanted() { return false; }
#endif

inline MapCall map_call(const KernelCall& call, const ConvCall& c) {
  return {c.pass,    &c.shape, {cpu::image_stride(*c.x), cpu::image_stride(*c.y)}, call.outputs[0].dtype, c.x->data,
          c.w->data, c.y->data};
}

inline void convolve(const KernelCall& call, const ConvCall& c) {
  if (call.outputs[0].numel() == 0) return;
  if (libraries_are_wanted() && convolve_by_map_matrix(call, map_call(call, c))) return;
  if (!convolve_by_dnn(call, c)) convolve_by_own_kernels(call, c);
}

// The workspace is that of the matrix of a small map, or that of cuDNN's plan, if there is one. Our own kernels can do with
// less than they want.
inline std::int64_t convolution_workspace(const KernelCall& call, const ConvCall& c) {
  if (call.outputs[0].numel() == 0) return 0;
  if (const std::int64_t of_map = libraries_are_wanted() ? map_matrix_workspace(map_call(call, c)) : -1; of_map >= 0)
    return of_map;
  const std::int64_t own = own_workspace(call, c), of_dnn = workspace_of_dnn(call, c);
  return of_dnn < 0 ? own : of_dnn;
}

}  // namespace convolution

// ---- the ops ----

using namespace convolution;

#define TAPEDECK_CONVOLUTION(op, Attrs, pass, dims)                                                 \
  void op(const KernelCall& call) { convolve(call, conv_call<Attrs>(call, ConvPass::pass, dims)); } \
  std::int64_t op##_workspace(const KernelCall& call) {                                             \
    return convolution_workspace(call, conv_call<Attrs>(call, ConvPass::pass, dims));               \
  }

TAPEDECK_CONVOLUTION(conv2d, ConvAttrs, forward, 2)
TAPEDECK_CONVOLUTION(conv2d_input_grad, ConvInputGradAttrs, input_grad, 2)
TAPEDECK_CONVOLUTION(conv2d_weight_grad, ConvWeightGradAttrs, weight_grad, 2)
TAPEDECK_CONVOLUTION(conv3d, ConvAttrs, forward, 3)
TAPEDECK_CONVOLUTION(conv3d_input_grad, ConvInputGradAttrs, input_grad, 3)
TAPEDECK_CONVOLUTION(conv3d_weight_grad, ConvWeightGradAttrs, weight_grad, 3)

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
