// Resampling of planes [n,c,...]: nearest in up to three dimensions, bilinear in two, and the gradients. One task owns whole
// rows of the result, or whole planes where a kernel scatters, so that every sum has one order.
#include <tapedeck/kernels/attrs/interpolate.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

// The sizes of [n,c,spatial], with up to three spatial sizes. Missing spatial sizes are ones in front.
struct Volume {
  std::int64_t planes, size[3];

  explicit Volume(const View& v) : planes(v.sizes[0] * v.sizes[1]), size{1, 1, 1} {
    for (int d = 2; d < v.rank; ++d) size[3 - v.rank + d] = v.sizes[d];
  }
  std::int64_t numel() const { return size[0] * size[1] * size[2]; }
};

// nearest(): the element of the `in` elements that result element i of `out` shows. first_shown(): the first result element
// that shows element s.
std::int64_t nearest(std::int64_t i, std::int64_t in, std::int64_t out) { return i * in / out; }
std::int64_t first_shown(std::int64_t s, std::int64_t in, std::int64_t out) { return (s * out + in - 1) / in; }

template <class T>
void nearest_row(const T* from, T* to, std::int64_t in, std::int64_t out) {
  if (in == out) {
    std::copy(from, from + out, to);
  } else if (out % in == 0) {
    const std::int64_t times = out / in;
    for (std::int64_t s = 0; s < in; ++s)
      for (std::int64_t k = 0; k < times; ++k) *to++ = from[s];
  } else {
    for (std::int64_t i = 0; i < out; ++i) to[i] = from[nearest(i, in, out)];
  }
}

template <class T>
void interpolate_nearest_of(const KernelCall& call) {
  const Volume in(call.inputs[0]), out(call.outputs[0]);
  const Images<T> from(call.inputs[0]), to(call.outputs[0]);
  const std::int64_t rows = out.size[0] * out.size[1];
  parallel_for(out.planes * rows, grain_for(static_cast<double>(out.size[2]) + 10), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t z = nearest(row % rows / out.size[1], in.size[0], out.size[0]);
      const std::int64_t y = nearest(row % out.size[1], in.size[1], out.size[1]);
      const T* from_row = from.plane(row / rows) + (z * in.size[1] + y) * in.size[2];
      nearest_row(from_row, to.plane(row / rows) + row % rows * out.size[2], in.size[2], out.size[2]);
    }
  });
}

// Adds to to[s] all result elements that show element s, in order.
template <class T>
void add_shown(const T* from, T* to, std::int64_t in, std::int64_t out) {
  const std::int64_t times = out % in == 0 ? out / in : 0;
  for (std::int64_t s = 0; s < in; ++s) {
    const std::int64_t first = times ? s * times : first_shown(s, in, out),
                       last = times ? first + times : first_shown(s + 1, in, out);
    for (std::int64_t i = first; i < last; ++i) to[s] += from[i];
  }
}

// The gradient of nearest: dx[s] = the sum of the dy that show element s.
template <class T>
void interpolate_nearest_grad_of(const KernelCall& call) {
  const Volume dy(call.inputs[0]), dx(call.outputs[0]);
  const Images<T> from(call.inputs[0]), result(call.outputs[0]);
  const std::int64_t rows = dx.size[0] * dx.size[1];
  const auto first = [&](int d, std::int64_t s) { return first_shown(s, dx.size[d], dy.size[d]); };
  const double shown = static_cast<double>(dy.numel()) / static_cast<double>(rows);
  parallel_for(dx.planes * rows, grain_for(shown + 10), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* to = result.plane(row / rows) + row % rows * dx.size[2];
      std::fill(to, to + dx.size[2], T(0));
      const std::int64_t z = row % rows / dx.size[1], y = row % dx.size[1];
      const T* plane = from.plane(row / rows);
      for (std::int64_t k = first(0, z); k < first(0, z + 1); ++k)
        for (std::int64_t j = first(1, y); j < first(1, y + 1); ++j) {
          add_shown(plane + (k * dy.size[1] + j) * dy.size[2], to, dx.size[2], dy.size[2]);
        }
    }
  });
}

// Computes the bilinear taps of all rows, then of all columns, in the workspace.
const Tap* taps_of(const KernelCall& call, const View& small, const View& large) {
  Tap* taps = static_cast<Tap*>(call.workspace);
  const bool align = call.attributes<InterpolateBilinearAttrs>().align_corners;
  Tap* next = taps;
  for (int d = 2; d < 4; ++d)
    for (std::int64_t i = 0; i < large.sizes[d]; ++i) *next++ = bilinear_tap(i, small.sizes[d], large.sizes[d], align);
  return taps;
}

template <class T>
void interpolate_bilinear_of(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const Images<T> from(x), result(y);
  const std::int64_t h = y.sizes[2], w = y.sizes[3], in_w = x.sizes[3];
  const Tap *row_taps = taps_of(call, x, y), *taps = row_taps + h;
  parallel_for(y.sizes[0] * y.sizes[1] * h, grain_for(2 * static_cast<double>(w) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const Tap& v = row_taps[row % h];
                   const T* plane = from.plane(row / h);
                   const T *upper = plane + v.low * in_w, *lower = plane + v.high * in_w, down = static_cast<T>(v.part);
                   T* to = result.plane(row / h) + row % h * w;
                   for (std::int64_t i = 0; i < w; ++i) {
                     const T right = static_cast<T>(taps[i].part);
                     const T top = upper[taps[i].low] * (T(1) - right) + upper[taps[i].high] * right;
                     const T bottom = lower[taps[i].low] * (T(1) - right) + lower[taps[i].high] * right;
                     to[i] = top * (T(1) - down) + bottom * down;
                   }
                 }
               });
}

template <class T>
void scatter_bilinear(const T* dy, const Tap* row_taps, std::int64_t h, const Tap* taps, std::int64_t w, T* dx,
                      std::int64_t in_w) {
  for (std::int64_t row = 0; row < h; ++row) {
    const T down = static_cast<T>(row_taps[row].part);
    T *upper = dx + row_taps[row].low * in_w, *lower = dx + row_taps[row].high * in_w;
    for (std::int64_t i = 0; i < w; ++i) {
      const T right = static_cast<T>(taps[i].part), top = dy[row * w + i] * (T(1) - down), bottom = dy[row * w + i] * down;
      upper[taps[i].low] += top * (T(1) - right);
      upper[taps[i].high] += top * right;
      lower[taps[i].low] += bottom * (T(1) - right);
      lower[taps[i].high] += bottom * right;
    }
  }
}

template <class T>
void interpolate_bilinear_grad_of(const KernelCall& call) {
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  const Images<T> from(dy), result(dx);
  const std::int64_t h = dy.sizes[2], w = dy.sizes[3], in_plane = dx.sizes[2] * dx.sizes[3];
  const Tap* taps = taps_of(call, dx, dy);
  parallel_for(dx.sizes[0] * dx.sizes[1], grain_for(4 * static_cast<double>(h * w) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t plane = begin; plane < end; ++plane) {
                   T* to = result.plane(plane);
                   std::fill(to, to + in_plane, T(0));
                   scatter_bilinear(from.plane(plane), taps, h, taps + h, w, to, dx.sizes[3]);
                 }
               });
}

}  // namespace

void interpolate_nearest(const KernelCall& call) {
  if (call.outputs[0].numel() > 0)
    for_widths(call.outputs[0].dtype, [&](auto t) { interpolate_nearest_of<decltype(t)>(call); });
}

void interpolate_nearest_grad(const KernelCall& call) {
  if (call.outputs[0].numel() > 0)
    for_floats(call, call.outputs[0].dtype, [&](auto t) { interpolate_nearest_grad_of<decltype(t)>(call); });
}

void interpolate_bilinear(const KernelCall& call) {
  if (call.outputs[0].numel() > 0)
    for_floats(call, call.outputs[0].dtype, [&](auto t) { interpolate_bilinear_of<decltype(t)>(call); });
}

void interpolate_bilinear_grad(const KernelCall& call) {
  if (call.outputs[0].numel() > 0)
    for_floats(call, call.outputs[0].dtype, [&](auto t) { interpolate_bilinear_grad_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
