// Convolution as plain loops, for f64 and for shapes that oneDNN does not take.
//
// All three passes walk (out channel, in channel, kernel row, kernel column) and shift a row of x against a row of y; the inner
// loop is contiguous for stride 1. Each result is summed in one fixed order by one thread.
#include <tapedeck/kernels/cpu/conv.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

// The outputs [begin, end) along one dimension whose input position o * stride + k - pad lies inside [0, size).
struct Range {
  std::int64_t begin, end;
};
Range inside(std::int64_t size, std::int64_t out, std::int64_t stride, std::int64_t k, std::int64_t pad) {
  const std::int64_t shift = pad - k;  // input = o * stride - shift
  const std::int64_t begin = shift > 0 ? (shift + stride - 1) / stride : 0;
  const std::int64_t end = size + shift <= 0 ? 0 : (size + shift - 1) / stride + 1;
  return {begin, std::max(begin, std::min(out, end))};
}

// Calls f(input row offset, output row offset, columns) for every output row that kernel element (kr, kc) touches; the first
// offset belongs to output column columns.begin.
template <class F>
void for_touched_rows(const ConvShape& s, std::int64_t kr, std::int64_t kc, F&& f) {
  const Range rows = inside(s.height, s.out_height(), s.stride_height, kr, s.pad_height);
  const Range cols = inside(s.width, s.out_width(), s.stride_width, kc, s.pad_width);
  if (cols.begin == cols.end) return;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t in_row = row * s.stride_height + kr - s.pad_height;
    f(in_row * s.width + cols.begin * s.stride_width + kc - s.pad_width, row * s.out_width() + cols.begin,
      cols.end - cols.begin);
  }
}

double plane_ns(const ConvShape& s, std::int64_t channels) {
  return 0.5 * static_cast<double>(s.out_height() * s.out_width() * s.kernel_height * s.kernel_width * channels) + 10;
}

template <class T>
void forward(const ConvShape& s, const T* x, const T* w, T* y) {
  const std::int64_t in_plane = s.height * s.width, out_plane = s.out_height() * s.out_width();
  parallel_for(s.batch * s.out_channels, grain_for(plane_ns(s, s.in_channels)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t image = job / s.out_channels, out_channel = job % s.out_channels;
      T* to = y + job * out_plane;
      const T* weight = w + out_channel * s.in_channels * s.kernel_height * s.kernel_width;
      std::fill(to, to + out_plane, T(0));
      for (std::int64_t c = 0; c < s.in_channels; ++c)
        for (std::int64_t kr = 0; kr < s.kernel_height; ++kr)
          for (std::int64_t kc = 0; kc < s.kernel_width; ++kc) {
            const T factor = *weight++;
            const T* from = x + (image * s.in_channels + c) * in_plane;
            for_touched_rows(s, kr, kc, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
              TAPEDECK_INDEPENDENT
              for (std::int64_t i = 0; i < n; ++i) to[out + i] += factor * from[in + i * s.stride_width];
            });
          }
    }
  });
}

template <class T>
void input_grad(const ConvShape& s, const T* dy, const T* w, T* dx) {
  const std::int64_t in_plane = s.height * s.width, out_plane = s.out_height() * s.out_width();
  parallel_for(s.batch * s.in_channels, grain_for(plane_ns(s, s.out_channels)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t image = job / s.in_channels, in_channel = job % s.in_channels;
      T* to = dx + job * in_plane;
      std::fill(to, to + in_plane, T(0));
      for (std::int64_t o = 0; o < s.out_channels; ++o) {
        const T* weight = w + (o * s.in_channels + in_channel) * s.kernel_height * s.kernel_width;
        const T* from = dy + (image * s.out_channels + o) * out_plane;
        for (std::int64_t kr = 0; kr < s.kernel_height; ++kr)
          for (std::int64_t kc = 0; kc < s.kernel_width; ++kc) {
            const T factor = *weight++;
            for_touched_rows(s, kr, kc, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
              TAPEDECK_INDEPENDENT
              for (std::int64_t i = 0; i < n; ++i) to[in + i * s.stride_width] += factor * from[out + i];
            });
          }
      }
    }
  });
}

template <class T>
void weight_grad(const ConvShape& s, const T* dy, const T* x, T* dw) {
  const std::int64_t in_plane = s.height * s.width, out_plane = s.out_height() * s.out_width();
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  parallel_for(s.out_channels * s.in_channels, grain_for(plane_ns(s, s.batch)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t out_channel = job / s.in_channels, in_channel = job % s.in_channels;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        T total = 0;
        for (std::int64_t image = 0; image < s.batch; ++image) {
          const T* from_x = x + (image * s.in_channels + in_channel) * in_plane;
          const T* from_dy = dy + (image * s.out_channels + out_channel) * out_plane;
          T part = 0;
          for_touched_rows(s, tap / s.kernel_width, tap % s.kernel_width,
                           [&](std::int64_t in, std::int64_t out, std::int64_t n) {
                             for (std::int64_t i = 0; i < n; ++i) part += from_dy[out + i] * from_x[in + i * s.stride_width];
                           });
          total += part;
        }
        dw[job * taps + tap] = total;
      }
    }
  });
}

}  // namespace

template <class T>
void convolve_directly(ConvPass pass, const ConvShape& shape, const T* first, const T* second, T* output) {
  switch (pass) {
    case ConvPass::forward:
      return forward(shape, first, second, output);
    case ConvPass::input_grad:
      return input_grad(shape, first, second, output);
    case ConvPass::weight_grad:
      return weight_grad(shape, first, second, output);
  }
}

template void convolve_directly<float>(ConvPass, const ConvShape&, const float*, const float*, float*);
template void convolve_directly<double>(ConvPass, const ConvShape&, const double*, const double*, double*);

}  // namespace tapedeck::kernels::cpu
