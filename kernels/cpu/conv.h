// Two-dimensional convolution, NCHW x OIHW -> NCHW, and its two gradients: what the kernels and the op blocks share.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

struct ConvShape {
  std::int64_t batch, in_channels, height, width;          // x
  std::int64_t out_channels, kernel_height, kernel_width;  // w: [out_channels, in_channels, kernel_height, kernel_width]
  std::int64_t stride_height, stride_width, pad_height, pad_width;

  std::int64_t out_height() const { return (height + 2 * pad_height - kernel_height) / stride_height + 1; }
  std::int64_t out_width() const { return (width + 2 * pad_width - kernel_width) / stride_width + 1; }
  std::int64_t in_size() const { return in_channels * height * width; }  // elements of one image
  std::int64_t out_size() const { return out_channels * out_height() * out_width(); }
  std::int64_t weight_size() const { return out_channels * in_channels * kernel_height * kernel_width; }
  bool empty() const { return batch == 0 || in_size() == 0 || out_size() == 0 || weight_size() == 0; }
  bool operator==(const ConvShape& o) const = default;
};

enum class ConvPass : std::uint8_t { forward, input_grad, weight_grad };

// Bytes of workspace that a pass wants: a function of these numbers alone, on every machine and for any number of threads.
// A kernel that is handed less (or none) still computes, more slowly and with other rounding.
std::int64_t conv2d_workspace(const ConvShape& shape, DType dtype);
std::int64_t conv2d_input_grad_workspace(const ConvShape& shape, DType dtype);
std::int64_t conv2d_weight_grad_workspace(const ConvShape& shape, DType dtype);

// The plain loops: f64, and whatever oneDNN refuses. `inputs` and `output` as in the kernel of that pass.
template <class T>
void convolve_directly(ConvPass pass, const ConvShape& shape, const T* first, const T* second, T* output);

// The oneDNN way, f32. False if oneDNN does not know the shape or the workspace is too small.
bool convolve_onednn(ConvPass pass, const ConvShape& shape, const float* first, const float* second, float* output,
                     void* workspace, std::size_t workspace_bytes);

}  // namespace tapedeck::kernels::cpu
