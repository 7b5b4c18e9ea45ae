// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_CREATION(X, W)                                                                                           \
  /* create.inl */                                                                                                             \
  X(full, native) X(arange, native) X(linspace, native) X(eye, native)                                                         \
  /* random.inl */                                                                                                             \
  X(uniform, native) X(normal, native) X(trunc_normal, native) X(dropout, native) X(alpha_dropout, native)                     \
  X(bernoulli, native) X(randint, native) X(rng_next, native) X(fold_in, native)                                               \
  /* choose.inl */                                                                                                             \
  X(randperm, native) W(multinomial, native)
// clang-format on
