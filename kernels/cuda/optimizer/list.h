// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_OPTIMIZER(X, W)                                                                                          \
  X(sgd, native) X(sgd_momentum, native) X(adamw, native) X(adam, native) X(adamw_amsgrad, native) X(adam_amsgrad, native)     \
  X(rmsprop, native) X(rmsprop_momentum, native) X(rmsprop_centered, native) X(rmsprop_centered_momentum, native)              \
  X(adagrad, native) X(adadelta, native) X(lion, native) X(count_next, native) X(loss_scale_next, native)                      \
  X(all_finite, native) W(global_norm, native)
// clang-format on

// The ops whose calls one launch can run together, by the function <op>_group (grouped.inl).
#define TAPEDECK_CUDA_GROUPS(X) X(sgd) X(sgd_momentum) X(adamw) X(adam) X(ema)
