// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_PRODUCTS(X, W) W(matmul, native) W(linear, native) W(addmm, native)                                             \
  X(scaled_dot_product_attention, native) W(scaled_dot_product_attention_grad, native)
// clang-format on
