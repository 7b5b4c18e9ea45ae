// unfold writes every window of an image as a column (im2col); fold adds such columns back to an image (col2im). A thread
// computes one element of the result, with the bits of the CPU kernel: fold visits the places of the window in their order, and
// each place lies over an element in at most one window.
#pragma once

#include <tapedeck/kernels/attrs/unfold.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cuda/convolution/planes.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace convolution {

// Sizes are {height, width}. `windows` are the windows along each dimension.
struct UnfoldArgs {
  const void* from;
  void* to;
  std::int64_t n, plane, length;  // elements of the result, of an image's plane, and the number of windows
  std::int64_t size[2], windows[2], window[2], stride[2], padding[2], dilation[2];
};

// U is an unsigned integer as wide as an element.
template <class U>
TAPEDECK_KERNEL void unfold_kernel(const UnfoldArgs s) {
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) {
    const std::int64_t row = quotient(i, s.length), o = i - row * s.length;  // a row holds one place of one channel
    const std::int64_t place_row = quotient(row, s.window[1]), channel = quotient(place_row, s.window[0]);
    const std::int64_t kh = place_row - channel * s.window[0], kw = row - place_row * s.window[1];
    const std::int64_t oh = quotient(o, s.windows[1]), ow = o - oh * s.windows[1];
    const std::int64_t h = oh * s.stride[0] + kh * s.dilation[0] - s.padding[0];
    const std::int64_t w = ow * s.stride[1] + kw * s.dilation[1] - s.padding[1];
    const bool inside = h >= 0 && h < s.size[0] && w >= 0 && w < s.size[1];
    static_cast<U*>(s.to)[i] = inside ? static_cast<const U*>(s.from)[channel * s.plane + h * s.size[1] + w] : U(0);
  }
}

// The window whose place k along a dimension lies over an element, or -1.
TAPEDECK_DEVICE std::int64_t window_over(const UnfoldArgs& s, int dim, std::int64_t at, std::int64_t k) {
  const std::int64_t first = at + s.padding[dim] - k * s.dilation[dim];
  if (first < 0) return -1;
  const std::int64_t o = quotient(first, s.stride[dim]);
  return o * s.stride[dim] == first && o < s.windows[dim] ? o : -1;
}

template <class T>
TAPEDECK_KERNEL void fold_kernel(const UnfoldArgs s) {
  for (std::int64_t i = thread_index(); i < s.n; i += thread_count()) {
    const std::int64_t channel = quotient(i, s.plane), at = i - channel * s.plane, h = quotient(at, s.size[1]);
    const std::int64_t w = at - h * s.size[1];
    const T* const from = static_cast<const T*>(s.from) + channel * s.window[0] * s.window[1] * s.length;
    Compute<T> sum = 0;
    for (std::int64_t kh = 0; kh < s.window[0]; ++kh) {
      const std::int64_t oh = window_over(s, 0, h, kh);
      if (oh < 0) continue;
      for (std::int64_t kw = 0; kw < s.window[1]; ++kw) {
        const std::int64_t ow = window_over(s, 1, w, kw);
        if (ow >= 0) sum += read(from[(kh * s.window[1] + kw) * s.length + oh * s.windows[1] + ow]);
      }
    }
    static_cast<T*>(s.to)[i] = written<T>(sum);
  }
}

template <class Attrs>
UnfoldArgs unfold_args(const KernelCall& call, const Attrs& attrs, const View& image) {
  UnfoldArgs s{};
  s.from = call.inputs[0].data, s.to = call.outputs[0].data, s.n = call.outputs[0].numel();
  s.plane = image.sizes[2] * image.sizes[3], s.length = 1;
  for (int d = 0; d < 2; ++d) {
    s.size[d] = image.sizes[2 + d], s.windows[d] = windows_along(attrs, d, s.size[d]);
    s.window[d] = attrs.window[d], s.stride[d] = attrs.stride[d];
    s.padding[d] = attrs.padding[d], s.dilation[d] = attrs.dilation[d];
    s.length *= s.windows[d];
  }
  return s;
}

}  // namespace convolution

// ---- the ops ----

using namespace convolution;

void unfold(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  const UnfoldArgs s = unfold_args(call, call.attributes<UnfoldAttrs>(), call.inputs[0]);
  for_element_widths(call.outputs[0].dtype, [&](auto u) { launch(call, &unfold_kernel<decltype(u)>, for_items(s.n), s); });
}

void fold(const KernelCall& call) {
  if (call.outputs[0].numel() == 0) return;
  const UnfoldArgs s = unfold_args(call, call.attributes<FoldAttrs>(), call.outputs[0]);
  for_floats(call, call.outputs[0].dtype, [&](auto t) { launch(call, &fold_kernel<decltype(t)>, for_items(s.n), s); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
