// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_POOLING(X, W)                                                                                   \
  X(max_pool2d, native) X(max_pool2d_index, native) X(max_pool2d_at_index, native) X(max_pool2d_grad, native)         \
  X(max_pool2d_grad_from_index, native) X(avg_pool2d, native) X(avg_pool2d_grad, native)                              \
  X(max_pool3d, native) X(max_pool3d_index, native) X(max_pool3d_at_index, native)                                    \
  X(max_pool3d_grad_from_index, native) X(avg_pool3d, native) X(avg_pool3d_grad, native)
// clang-format on
