// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_REDUCTION(X, W)                                                                                          \
  W(sum, native) W(mean, native) W(max, in_f32) W(min, in_f32) W(prod, in_f32)                                                 \
  W(any, native) W(all, native) W(count_nonzero, native)                                                                       \
  W(var, in_f32) W(std, in_f32) W(logsumexp, in_f32) W(norm, in_f32) W(argmax, in_f32) W(argmin, in_f32)
// clang-format on
