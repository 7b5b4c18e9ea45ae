// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_CONVOLUTION(X, W)                                                 \
  W(conv2d, native) W(conv2d_input_grad, native) W(conv2d_weight_grad, native)          \
  W(conv3d, native) W(conv3d_input_grad, native) W(conv3d_weight_grad, native)          \
  X(unfold, native) X(fold, native)
// clang-format on
