// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_NORMALIZATION(X, W)                                                                                      \
  X(softmax, native) X(log_softmax, native) X(softmax_grad, native) X(log_softmax_grad, native)                                \
  X(layer_norm, native) W(layer_norm_grad, native) X(rms_norm, native) W(rms_norm_grad, native)                                \
  X(group_norm, native) W(group_norm_grad, native)                                                                             \
  W(batch_norm, native) W(batch_norm_grad, native) W(batch_norm_inference, native)
// clang-format on
