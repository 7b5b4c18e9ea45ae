// unfold writes every window of an image as a column (im2col); fold adds such columns back to an image (col2im). A row of the
// columns holds one place of the window for all windows. Each row copies or adds ranges of the image, and these ranges are
// computed once per row, not once per element.
//
//   unfold [a b c], window 2   ->   [a b]     place 0 of both windows
//                                   [b c]     place 1
#include <tapedeck/kernels/attrs/unfold.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

// One place of the window along one dimension: for the windows [first, last) it lies inside the image, and window o shows
// element o * stride + shift.
struct Reach {
  std::int64_t first, last, shift, stride;
};

template <class Attrs>
Reach reach(const Attrs& a, int d, std::int64_t place, std::int64_t size, std::int64_t windows) {
  const std::int64_t stride = a.stride[d], shift = place * a.dilation[d] - a.padding[d];
  const std::int64_t last = shift >= size ? 0 : std::min(windows, (size - 1 - shift) / stride + 1);
  const std::int64_t first = shift >= 0 ? 0 : std::min(last, (-shift + stride - 1) / stride);
  return {first, last, shift, stride};
}

// The sizes that both kernels loop over: image h x w, windows oh x ow.
template <class Attrs>
struct Windows {
  const Attrs& attrs;
  std::int64_t h, w, oh, ow;

  Windows(const Attrs& a, std::int64_t height, std::int64_t width)
      : attrs(a), h(height), w(width), oh(windows_along(a, 0, height)), ow(windows_along(a, 1, width)) {}
  std::int64_t places() const { return attrs.window[0] * attrs.window[1]; }
  Reach rows(std::int64_t place) const { return reach(attrs, 0, place / attrs.window[1], h, oh); }
  Reach columns(std::int64_t place) const { return reach(attrs, 1, place % attrs.window[1], w, ow); }
};

template <class T, class Attrs>
void unfold_row(const Windows<Attrs>& s, std::int64_t place, const T* image, T* to) {
  const Reach rows = s.rows(place), columns = s.columns(place);
  std::fill(to, to + rows.first * s.ow, T(0));
  for (std::int64_t y = rows.first; y < rows.last; ++y) {
    const std::int64_t at =
        (y * rows.stride + rows.shift) * s.w + columns.shift;  // padding makes this negative for places in front of the image
    T* row = to + y * s.ow;
    std::fill(row, row + columns.first, T(0));
    if (columns.stride == 1 && columns.first < columns.last)
      std::copy(image + (at + columns.first), image + (at + columns.last), row + columns.first);
    else
      for (std::int64_t x = columns.first; x < columns.last; ++x) row[x] = image[at + x * columns.stride];
    std::fill(row + columns.last, row + s.ow, T(0));
  }
  std::fill(to + rows.last * s.ow, to + s.oh * s.ow, T(0));
}

template <class T, class Attrs>
void fold_row(const Windows<Attrs>& s, std::int64_t place, const T* from, T* image) {
  const Reach rows = s.rows(place), columns = s.columns(place);
  for (std::int64_t y = rows.first; y < rows.last; ++y) {
    const std::int64_t at = (y * rows.stride + rows.shift) * s.w + columns.shift;
    const T* row = from + y * s.ow;
    if (columns.stride == 1) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t x = columns.first; x < columns.last; ++x) image[at + x] += row[x];
    } else {
      for (std::int64_t x = columns.first; x < columns.last; ++x) image[at + x * columns.stride] += row[x];
    }
  }
}

}  // namespace

void unfold(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Windows s(call.attributes<UnfoldAttrs>(), x.sizes[2], x.sizes[3]);
  const std::int64_t length = s.oh * s.ow;
  for_widths(y.dtype, [&](auto t) {
    using T = decltype(t);
    parallel_for(y.numel() / length, grain_for(0.3 * static_cast<double>(length) + 10),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row)
                     unfold_row(s, row % s.places(), x.as<T>() + row / s.places() * s.h * s.w, y.as<T>() + row * length);
                 });
  });
}

// Each task owns whole images of the result.
void fold(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t planes = y.sizes[0] * y.sizes[1], elements = y.sizes[2] * y.sizes[3];
  if (planes * elements == 0) return;
  const Windows s(call.attributes<FoldAttrs>(), y.sizes[2], y.sizes[3]);
  const std::int64_t length = s.oh * s.ow;
  for_floats(call, y.dtype, [&](auto t) {
    using T = decltype(t);
    parallel_for(planes, grain_for(0.5 * static_cast<double>(length * s.places()) + 10),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t plane = begin; plane < end; ++plane) {
                     T* image = y.as<T>() + plane * elements;
                     std::fill(image, image + elements, T(0));
                     for (std::int64_t place = 0; place < s.places(); ++place)
                       fold_row(s, place, x.as<T>() + (plane * s.places() + place) * length, image);
                   }
                 });
  });
}

}  // namespace tapedeck::kernels::cpu
