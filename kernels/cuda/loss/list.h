// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_LOSS(X, W)                                                                                               \
  W(cross_entropy, native) W(cross_entropy_grad, native) W(nll_loss, native) W(nll_loss_grad, native)                                         \
  X(huber, native) X(binary_cross_entropy, native) X(binary_cross_entropy_with_logits, native) X(kl_div, native)
// clang-format on
