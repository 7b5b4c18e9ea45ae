// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_ELEMENTWISE(X, W)                                                                                        \
  X(add, in_f32) X(sub, in_f32) X(mul, in_f32) X(div, in_f32) X(maximum, in_f32) X(minimum, in_f32) X(pow, in_f32)             \
  X(relu_grad, in_f32) X(tanh_grad, in_f32) X(sigmoid_grad, in_f32)                                                            \
  X(neg, in_f32) X(abs, in_f32) X(sign, in_f32) X(relu, in_f32) X(square, in_f32) X(exp, in_f32) X(log, in_f32)                \
  X(tanh, in_f32) X(sigmoid, in_f32) X(sqrt, in_f32) X(rsqrt, in_f32) X(sin, in_f32) X(cos, in_f32)                            \
  X(equal, in_f32) X(not_equal, in_f32) X(less, in_f32) X(less_equal, in_f32) X(greater, in_f32) X(greater_equal, in_f32)      \
  X(logical_and, in_f32) X(logical_or, in_f32) X(logical_not, in_f32) X(where, native) X(cast, in_f32) X(copy, native)
// clang-format on
