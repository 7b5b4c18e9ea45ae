// unfold writes every window of an image as a column (im2col); fold adds such columns back to an image (col2im). All views are
// dense: images [planes, h, w], columns [planes, places of the window, windows].
//
//   unfold [a b c], window 2   ->   [a b]     place 0 of both windows
//                                   [b c]     place 1
//
// One thread makes one element of the result. fold adds the places of the window in ascending order, as the CPU kernel does.
#include <tapedeck/kernels/attrs/unfold.h>
#include <tapedeck/kernels/cuda/movement/movement.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

struct Unfold {
  const void* x;
  void* y;
  std::int64_t total;         // elements of the result
  std::int64_t h, w, oh, ow;  // image, windows
  std::int64_t window[2], stride[2], padding[2], dilation[2];
};

template <class Attrs>
Unfold unfold_of(const KernelCall& call, std::int64_t h, std::int64_t w) {
  const auto& a = call.attributes<Attrs>();
  Unfold u{call.inputs[0].data,
           call.outputs[0].data,
           call.outputs[0].numel(),
           h,
           w,
           windows_along(a, 0, h),
           windows_along(a, 1, w),
           {},
           {},
           {},
           {}};
  for (int d = 0; d < 2; ++d) {
    u.window[d] = a.window[d];
    u.stride[d] = a.stride[d];
    u.padding[d] = a.padding[d];
    u.dilation[d] = a.dilation[d];
  }
  return u;
}

template <class T>
TAPEDECK_KERNEL void unfold_kernel(const Unfold u) {
  for (std::int64_t i = thread_index(); i < u.total; i += thread_count()) {
    const std::int64_t column = i % u.ow, above = i / u.ow, row = above % u.oh, place = above / u.oh;
    const std::int64_t across = place % u.window[1], down = place / u.window[1] % u.window[0];
    const std::int64_t plane = place / u.window[1] / u.window[0];
    const std::int64_t y = row * u.stride[0] + down * u.dilation[0] - u.padding[0];
    const std::int64_t x = column * u.stride[1] + across * u.dilation[1] - u.padding[1];
    const bool inside = y >= 0 && y < u.h && x >= 0 && x < u.w;
    static_cast<T*>(u.y)[i] = inside ? static_cast<const T*>(u.x)[(plane * u.h + y) * u.w + x] : T{};
  }
}

// The window that shows element `at` of a dimension at this place of the window, or -1.
TAPEDECK_DEVICE std::int64_t window_showing(const Unfold& u, int d, std::int64_t at, std::int64_t place, std::int64_t windows) {
  const std::int64_t first = at + u.padding[d] - place * u.dilation[d];
  if (first < 0 || first % u.stride[d] != 0) return -1;
  return first / u.stride[d] < windows ? first / u.stride[d] : -1;
}

template <class T>
TAPEDECK_KERNEL void fold_kernel(const Unfold u) {
  for (std::int64_t i = thread_index(); i < u.total; i += thread_count()) {
    const std::int64_t x = i % u.w, above = i / u.w, y = above % u.h, plane = above / u.h;
    const T* const columns = static_cast<const T*>(u.x) + plane * u.window[0] * u.window[1] * u.oh * u.ow;
    T sum = T(0);
    for (std::int64_t down = 0; down < u.window[0]; ++down) {
      const std::int64_t row = window_showing(u, 0, y, down, u.oh);
      if (row < 0) continue;
      for (std::int64_t across = 0; across < u.window[1]; ++across) {
        const std::int64_t column = window_showing(u, 1, x, across, u.ow);
        if (column >= 0) sum += columns[((down * u.window[1] + across) * u.oh + row) * u.ow + column];
      }
    }
    static_cast<T*>(u.y)[i] = sum;
  }
}

}  // namespace

void unfold(const KernelCall& call) {
  const View& x = call.inputs[0];
  const Unfold u = unfold_of<UnfoldAttrs>(call, x.sizes[2], x.sizes[3]);
  movement::for_width(static_cast<std::size_t>(movement::width_of(x)),
                      [&](auto t) { launch(call, &unfold_kernel<decltype(t)>, for_items(u.total), u); });
}

void fold(const KernelCall& call) {
  const View& y = call.outputs[0];
  const Unfold u = unfold_of<FoldAttrs>(call, y.sizes[2], y.sizes[3]);
  if (y.dtype == DType::f32) return launch(call, &fold_kernel<float>, for_items(u.total), u);
  if (y.dtype == DType::f64) return launch(call, &fold_kernel<double>, for_items(u.total), u);
  call.fault->report("element type not supported by this kernel", static_cast<std::int64_t>(y.dtype));
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
