// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_MOVEMENT(X, W)                                                                                           \
  /* copies */ X(copy, native) X(concat, native) X(unstack, native) X(slice_assign, native) X(diagonal_assign, native)          \
  X(flip, native)                                                                                                              \
  /* windows */ X(pad, native) X(pad_constant, in_f32) X(pad_mode, native) X(pad_mode_grad, in_f32) X(roll, native)            \
  X(tril, native) X(triu, native)                                                                                              \
  /* select */ X(embedding, native) X(index_select, native) X(gather, native) X(gather_nd, native) X(one_hot, in_f32)          \
  /* combine */ W(embedding_grad, native) W(index_add, native) W(scatter, native) W(scatter_add, native)                       \
  W(scatter_reduce, native) W(scatter_nd, native) X(bincount, native)                                                          \
  /* sort */ W(sort, in_f32) W(argsort, in_f32) W(topk, in_f32) X(searchsorted, in_f32)                                        \
  /* mask */ W(nonzero, in_f32) W(masked_select, native) W(masked_scatter, native)                                           \
  /* scan */ X(cumsum, in_f32) X(cumprod, in_f32) X(cummax, in_f32) X(cummin, in_f32) X(linear_scan, in_f32)                   \
  X(logcumsumexp, in_f32)
// clang-format on
