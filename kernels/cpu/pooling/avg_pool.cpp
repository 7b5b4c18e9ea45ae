// Mean pooling and its gradient. A row of sums adds up tap by tap, and each sum is divided by the number of elements that its
// window counts: the padding too, or only the elements inside the image (count_include_pad).
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/pooling/pool.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {

namespace {

double row_ns(const Pool& p) { return 0.3 * static_cast<double>(p.out[2] * p.taps()) + 5; }

// The number of elements that window o counts along a dimension. Elements beyond the padding, which ceil_mode can add, never
// count.
std::int64_t counted(const Pool& p, std::size_t dim, std::int64_t o, bool count_pad) {
  const std::int64_t begin = p.position(dim, o, 0), end = std::min(begin + p.window[dim], p.in[dim] + p.pad[dim]);
  return count_pad ? end - begin : std::min(end, p.in[dim]) - std::max(begin, std::int64_t{0});
}

// The divisors of one piece of a row.
template <class T>
void divisors(const Pool& p, const PoolRow& part, bool count_pad, T* to) {
  const std::int64_t rows = counted(p, 0, part.depth, count_pad) * counted(p, 1, part.row, count_pad);
  for (std::int64_t i = 0; i < part.size(); ++i) to[i] = static_cast<T>(rows * counted(p, 2, part.begin + i, count_pad));
}

// Each row of a window gets a sum of its own, so that large windows lose less to rounding.
template <class T>
void average(const Pool& p, bool count_pad, const Images<T>& x, const Images<T>& y) {
  parallel_for(p.planes * p.out_rows(), grain_for(row_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    T total[kPoolPart], row_sum[kPoolPart], divisor[kPoolPart];
    for_parts(p, begin, end, [&](std::int64_t plane, const PoolRow& part, std::int64_t to) {
      const std::int64_t n = part.size();
      const T* const from_plane = x.plane(plane);
      T* const result = y.plane(plane) + to;
      std::fill(total, total + n, T(0));
      std::fill(row_sum, row_sum + n, T(0));
      std::int64_t window_row = 0;
      const auto close_row = [&] {
        for (std::int64_t i = 0; i < n; ++i) total[i] += row_sum[i];
        std::fill(row_sum, row_sum + n, T(0));
      };
      for_taps(p, part, [&](std::int64_t tap, std::int64_t offset, std::int64_t first, std::int64_t last) {
        if (tap / p.window[2] != window_row) close_row();
        window_row = tap / p.window[2];
        const T* from = from_plane + offset;
        with_stride(p.stride[2], [&](auto stride) {
          TAPEDECK_INDEPENDENT
          for (std::int64_t i = first; i < last; ++i) row_sum[i] += from[(i - first) * stride];
        });
      });
      close_row();
      divisors(p, part, count_pad, divisor);
      for (std::int64_t i = 0; i < n; ++i) result[i] = total[i] / divisor[i];
    });
  });
}

template <class T>
void spread(const Pool& p, bool count_pad, const Images<T>& dy, const Images<T>& dx) {
  const double plane_ns = row_ns(p) * static_cast<double>(p.out_rows()) + 0.1 * static_cast<double>(p.in_plane());
  parallel_for(p.planes, grain_for(plane_ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) std::fill_n(dx.plane(plane), p.in_plane(), T(0));
    T share[kPoolPart];
    for_parts(p, begin * p.out_rows(), end * p.out_rows(), [&](std::int64_t plane, const PoolRow& part, std::int64_t from) {
      const T* const grad = dy.plane(plane) + from;
      T* const to_plane = dx.plane(plane);
      divisors(p, part, count_pad, share);
      for (std::int64_t i = 0; i < part.size(); ++i) share[i] = grad[i] / share[i];
      for_taps(p, part, [&](std::int64_t, std::int64_t offset, std::int64_t first, std::int64_t last) {
        T* to = to_plane + offset;
        with_stride(p.stride[2], [&](auto stride) {
          TAPEDECK_INDEPENDENT
          for (std::int64_t i = first; i < last; ++i) to[(i - first) * stride] += share[i];
        });
      });
    });
  });
}

void averages(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const auto& attrs = call.attributes<AvgPoolAttrs>();
  const Pool p = make_pool(x, y, attrs);
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    average(p, attrs.count_include_pad, Images<T>(x), Images<T>(y));
  });
}

void averages_grad(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const auto& attrs = call.attributes<AvgPoolGradAttrs>();
  const Pool p = make_pool(dx, dy, attrs);
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    spread(p, attrs.count_include_pad, Images<T>(dy), Images<T>(dx));
  });
}

}  // namespace

void avg_pool2d(const KernelCall& call) { averages(call); }
void avg_pool2d_grad(const KernelCall& call) { averages_grad(call); }
void avg_pool3d(const KernelCall& call) { averages(call); }
void avg_pool3d_grad(const KernelCall& call) { averages_grad(call); }

}  // namespace tapedeck::kernels::cpu
