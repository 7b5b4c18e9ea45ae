// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_POOLING(X, W)                                                                                   \
  X(max_pool2d, native) X(max_pool2d_index, native) X(max_pool2d_at_index, native) X(max_pool2d_grad, native)         \
  X(max_pool2d_grad_from_index, native) X(avg_pool2d, native) X(avg_pool2d_grad, native)                              \
  X(max_pool3d, native) X(max_pool3d_index, native) X(max_pool3d_at_index, native)                                    \
  X(max_pool3d_grad_from_index, native) X(avg_pool3d, native) X(avg_pool3d_grad, native)                              \
  X(adaptive_avg_pool2d, native) X(adaptive_avg_pool2d_grad, native) X(adaptive_max_pool2d, native)                   \
  X(adaptive_max_pool2d_index, native) X(adaptive_max_pool2d_at_index, native)                                        \
  X(adaptive_max_pool2d_grad_from_index, native)                                                                      \
  X(interpolate_nearest, native) X(interpolate_nearest_grad, native)                                                  \
  X(interpolate_bilinear, native) X(interpolate_bilinear_grad, native)
// clang-format on
