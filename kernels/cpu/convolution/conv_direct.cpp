// Convolution as plain loops, for f64 and for shapes that the faster ways refuse.
//
// All three passes walk over (out channel, in channel of its group, kernel element), and combine a row of x with the shifted
// row of y. The inner loop is contiguous for stride 1. One thread sums each result in one fixed order.
#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

// The outputs that kernel element k reaches along one dimension: output o reads input o * stride + shift, for begin <= o < end.
struct Range {
  std::int64_t begin, end, shift;
};
Range inside(const ConvShape& s, std::size_t dim, std::int64_t k) {
  const std::int64_t stride = s.stride[dim], shift = k * s.dilation[dim] - s.before[dim];
  const std::int64_t begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
  const std::int64_t end = s.in[dim] <= shift ? 0 : (s.in[dim] - shift - 1) / stride + 1;
  return {begin, std::max(begin, std::min(s.out(dim), end)), shift};
}

struct Tap {
  Range depth, rows, cols;
  Tap(const ConvShape& s, std::int64_t tap)
      : depth(inside(s, 0, tap / (s.kernel[1] * s.kernel[2]))),
        rows(inside(s, 1, tap / s.kernel[2] % s.kernel[1])),
        cols(inside(s, 2, tap % s.kernel[2])) {}
};

// Calls f(input offset, output offset, columns) for every output row that a kernel element reaches. The offsets are those of
// output column cols.begin.
template <class F>
void for_touched_rows(const ConvShape& s, const Tap& tap, F&& f) {
  const std::int64_t n = tap.cols.end - tap.cols.begin, out_height = s.out(1), out_width = s.out(2);
  if (n == 0) return;
  for (std::int64_t d = tap.depth.begin; d < tap.depth.end; ++d)
    for (std::int64_t r = tap.rows.begin; r < tap.rows.end; ++r) {
      const std::int64_t in_row = (d * s.stride[0] + tap.depth.shift) * s.in[1] + r * s.stride[1] + tap.rows.shift;
      f(in_row * s.in[2] + tap.cols.begin * s.stride[2] + tap.cols.shift, (d * out_height + r) * out_width + tap.cols.begin, n);
    }
}

double plane_ns(const ConvShape& s, std::int64_t channels) {
  return 0.5 * static_cast<double>(s.out_plane()) * static_cast<double>(s.taps() * channels) + 10;
}

// to[i * to_step] += factor * from[i * from_step]; one of the steps is 1.
template <class T>
void add_multiple(T* to, std::int64_t to_step, T factor, const T* from, std::int64_t from_step, std::int64_t n) {
  if (to_step == 1 && from_step == 1) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
    return;
  }
  TAPEDECK_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) to[i * to_step] += factor * from[i * from_step];
}

template <class T>
void forward(const ConvShape& s, const ConvStrides& strides, const T* x, const T* w, T* y) {
  const std::int64_t in_plane = s.in_plane(), out_plane = s.out_plane(), taps = s.taps();
  parallel_for(s.batch * s.out_channels, grain_for(plane_ns(s, s.in_per_group())), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t image = job / s.out_channels, out_channel = job % s.out_channels;
      const T* first = x + image * strides.in + out_channel / s.out_per_group() * s.in_per_group() * in_plane;
      const T* weight = w + out_channel * s.in_per_group() * taps;
      T* to = y + image * strides.out + out_channel * out_plane;
      std::fill(to, to + out_plane, T(0));
      for (std::int64_t c = 0; c < s.in_per_group(); ++c)
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const T factor = *weight++;
          const T* from = first + c * in_plane;
          for_touched_rows(s, Tap(s, tap), [&](std::int64_t in, std::int64_t out, std::int64_t n) {
            add_multiple(to + out, 1, factor, from + in, s.stride[2], n);
          });
        }
    }
  });
}

template <class T>
void input_grad(const ConvShape& s, const ConvStrides& strides, const T* dy, const T* w, T* dx) {
  const std::int64_t in_plane = s.in_plane(), out_plane = s.out_plane(), taps = s.taps();
  parallel_for(s.batch * s.in_channels, grain_for(plane_ns(s, s.out_per_group())), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t image = job / s.in_channels, in_channel = job % s.in_channels;
      const std::int64_t first = in_channel / s.in_per_group() * s.out_per_group();
      T* to = dx + image * strides.in + in_channel * in_plane;
      std::fill(to, to + in_plane, T(0));
      for (std::int64_t o = first; o < first + s.out_per_group(); ++o) {
        const T* weight = w + (o * s.in_per_group() + in_channel % s.in_per_group()) * taps;
        const T* from = dy + image * strides.out + o * out_plane;
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for_touched_rows(s, Tap(s, tap), [&](std::int64_t in, std::int64_t out, std::int64_t n) {
            add_multiple(to + in, s.stride[2], weight[tap], from + out, 1, n);
          });
      }
    }
  });
}

// The sum of a[i * step] * b[i], added in eight lanes, because a single sum would wait for each addition.
template <class T>
T product_sum(const T* a, const T* b, std::int64_t step, std::int64_t n) {
  constexpr int kLanes = 8;
  T part[kLanes] = {};
  std::int64_t i = 0;
  if (step == 1)
    for (; i + kLanes <= n; i += kLanes) {
      TAPEDECK_SHORT_LOOP
      for (int k = 0; k < kLanes; ++k) part[k] += a[i + k] * b[i + k];
    }
  else
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) part[k] += a[i + k] * b[(i + k) * step];
  for (int k = 0; i < n; ++i, ++k) part[k] += a[i] * b[i * step];
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

template <class T>
void weight_grad(const ConvShape& s, const ConvStrides& strides, const T* dy, const T* x, T* dw) {
  const std::int64_t in_plane = s.in_plane(), out_plane = s.out_plane(), taps = s.taps();
  parallel_for(s.out_channels * s.in_per_group(), grain_for(plane_ns(s, s.batch)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t out_channel = job / s.in_per_group();
      const std::int64_t in_channel = out_channel / s.out_per_group() * s.in_per_group() + job % s.in_per_group();
      for (std::int64_t t = 0; t < taps; ++t) {
        const Tap tap(s, t);
        T total = 0;
        for (std::int64_t image = 0; image < s.batch; ++image) {
          const T* from_x = x + image * strides.in + in_channel * in_plane;
          const T* from_dy = dy + image * strides.out + out_channel * out_plane;
          T part = 0;
          for_touched_rows(s, tap, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
            part += product_sum(from_dy + out, from_x + in, s.stride[2], n);
          });
          total += part;
        }
        dw[job * taps + t] = total;
      }
    }
  });
}

}  // namespace

template <class T>
void convolve_directly(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const T* first, const T* second,
                       T* output) {
  switch (pass) {
    case ConvPass::forward:
      return forward(shape, strides, first, second, output);
    case ConvPass::input_grad:
      return input_grad(shape, strides, first, second, output);
    case ConvPass::weight_grad:
      return weight_grad(shape, strides, first, second, output);
  }
}

template void convolve_directly<float>(ConvPass, const ConvShape&, const ConvStrides&, const float*, const float*, float*);
template void convolve_directly<double>(ConvPass, const ConvShape&, const ConvStrides&, const double*, const double*, double*);

}  // namespace tapedeck::kernels::cpu
