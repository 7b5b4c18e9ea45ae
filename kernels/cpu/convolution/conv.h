// The shape of a convolution, and the three ways to compute it; shared by the kernels and the op blocks. A convolution takes
// x [n,ci,spatial] and weights [co,ci/groups,spatial], with two or three spatial dimensions, and has two gradients.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/kernel.h>

#include <array>
#include <cstdint>

namespace tapedeck::kernels::cpu {

using Spatial = std::array<std::int64_t, 3>;  // {depth, height, width}

inline std::int64_t volume(const Spatial& s) { return s[0] * s[1] * s[2]; }

// The sizes of one convolution. Two spatial dimensions are stored as three with a depth of 1. `before` and `after` are the
// paddings.
struct ConvShape {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Spatial in = {1, 1, 1}, kernel = {1, 1, 1}, stride = {1, 1, 1}, dilation = {1, 1, 1}, before = {0, 0, 0}, after = {0, 0, 0};

  std::int64_t out(std::size_t i) const {
    return (in[i] + before[i] + after[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  }
  std::int64_t in_plane() const { return volume(in); }
  std::int64_t out_plane() const { return out(0) * out(1) * out(2); }
  std::int64_t taps() const { return volume(kernel); }
  std::int64_t in_per_group() const { return in_channels / groups; }
  std::int64_t out_per_group() const { return out_channels / groups; }
  std::int64_t in_size() const { return in_channels * in_plane(); }  // the number of elements of one image
  std::int64_t out_size() const { return out_channels * out_plane(); }
  std::int64_t weight_size() const { return out_channels * in_per_group() * taps(); }
  bool empty() const { return batch == 0 || in_size() == 0 || out_size() == 0 || weight_size() == 0; }
  bool depthwise() const { return groups > 1 && in_channels == groups && out_channels == groups; }
  // True if the convolution has only two spatial dimensions, and depth plays no part.
  bool flat() const { return in[0] == 1 && kernel[0] == 1 && before[0] == 0 && after[0] == 0; }
  bool operator==(const ConvShape& o) const = default;
};

// Entry i of an attribute list for `dims` dimensions (attrs.h), and the padding in front of and behind dimension i.
inline std::int64_t item(const Ints& list, int i) { return list.size == 1 ? list[0] : list[i]; }
inline std::int64_t padding_before(const Ints& padding, int i) { return item(padding, i); }
inline std::int64_t padding_after(const Ints& padding, int i, int dims) {
  return padding.size == 2 * dims ? padding[dims + i] : item(padding, i);
}

// The convolution that x, w and the attributes describe. x holds the sizes [n,ci,spatial] and w the sizes
// [co,ci/groups,spatial], each of dims + 2 numbers. REQUIRES: type inference has accepted the attributes.
template <class Attrs>
ConvShape conv_shape(int dims, const std::int64_t* x, const std::int64_t* w, const Attrs& attrs) {
  ConvShape s;
  s.batch = x[0], s.in_channels = x[1], s.out_channels = w[0], s.groups = attrs.groups;
  for (int i = 0; i < dims; ++i) {
    const auto at = static_cast<std::size_t>(3 - dims + i);
    s.in[at] = x[2 + i], s.kernel[at] = w[2 + i];
    s.stride[at] = item(attrs.stride, i), s.dilation[at] = item(attrs.dilation, i);
    s.before[at] = padding_before(attrs.padding, i), s.after[at] = padding_after(attrs.padding, i, dims);
  }
  return s;
}

// The three kernels of a convolution: the result, the gradient of x, and the gradient of the weights.
enum class ConvPass : std::uint8_t { forward, input_grad, weight_grad };

// Elements from one image to the next: `in` for x or its gradient, `out` for y or its gradient. Strides do not change the bits.
struct ConvStrides {
  std::int64_t in = 0, out = 0;
};
inline ConvStrides packed_images(const ConvShape& s) { return {s.in_size(), s.out_size()}; }

// The bytes of workspace for one pass. They depend on these arguments alone, not on the machine or the number of threads. A
// kernel with less workspace, or none, still computes the result, but more slowly and with other rounding. That of f16 and bf16
// holds f32 copies of the operands and the result, because not every processor convolves bf16; the kernel needs it.
std::int64_t convolution_workspace(ConvPass pass, const ConvShape& shape, DType dtype);

// Computes the pass with plain loops: for f64, and for shapes that the other two ways refuse. The operands and the result are
// those of the kernel of that pass.
template <class T>
void convolve_directly(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const T* first, const T* second,
                       T* output);

// Computes the pass with oneDNN: f32, and bf16 with sums in f32, which needs a processor that multiplies pairs of bf16. Returns
// false if oneDNN has no fast way for the shape, or if the workspace is too small.
bool convolve_onednn(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const float* first, const float* second,
                     float* output, void* workspace, std::size_t workspace_bytes);
bool convolve_onednn_bf16(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const std::uint16_t* first,
                          const std::uint16_t* second, std::uint16_t* output, void* workspace, std::size_t workspace_bytes);

// Computes the pass as matrix products over gathered columns, f32. Returns false if the products would be too small to be fast,
// or if the workspace is too small.
bool convolve_products(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const float* first,
                       const float* second, float* output, void* workspace, std::size_t workspace_bytes);

}  // namespace tapedeck::kernels::cpu
