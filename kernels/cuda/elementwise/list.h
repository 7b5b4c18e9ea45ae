// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_ELEMENTWISE(X, W)                                                                                        \
  /* arithmetic.inl, add_n.inl */                                                                                              \
  X(add, native) X(sub, native) X(mul, native) X(div, native) X(maximum, native) X(minimum, native) X(pow, native)             \
  X(remainder, native) X(fmod, native) X(floor_divide, native) X(relu_grad, native) X(tanh_grad, native)                       \
  X(sigmoid_grad, native) X(addcmul, native) X(ema, native) W(add_n, native)                                                   \
  /* unary.inl */                                                                                                              \
  X(neg, native) X(abs, native) X(sign, native) X(relu, native) X(square, native) X(exp, native) X(log, native)                \
  X(tanh, native) X(sigmoid, native) X(sqrt, native) X(rsqrt, native) X(sin, native) X(cos, native)                            \
  X(reciprocal, native) X(frac, native) X(floor, native) X(ceil, native) X(round, native) X(trunc, native)                     \
  X(clamp, native) X(nan_to_num, native)                                                                                       \
  /* functions.inl */                                                                                                          \
  X(exp2, native) X(expm1, native) X(log2, native) X(log10, native) X(log1p, native) X(tan, native) X(asin, native)            \
  X(acos, native) X(atan, native) X(sinh, native) X(cosh, native) X(asinh, native) X(acosh, native) X(atanh, native)           \
  X(erf, native) X(erfc, native) X(erfinv, native) X(lgamma, native) X(digamma, native) X(polygamma, native)                   \
  X(atan2, native) X(hypot, native) X(logaddexp, native) X(copysign, native) X(lerp, native)                                   \
  /* compare.inl */                                                                                                            \
  X(equal, native) X(not_equal, native) X(less, native) X(less_equal, native) X(greater, native) X(greater_equal, native)      \
  X(isclose, native) X(isnan, native) X(isinf, native) X(isfinite, native) X(logical_and, native) X(logical_or, native)        \
  X(logical_xor, native) X(logical_not, native) X(bitwise_and, native) X(bitwise_or, native) X(bitwise_xor, native)            \
  X(bitwise_not, native) X(left_shift, native) X(right_shift, native) X(where, native)                                         \
  /* activations.inl */                                                                                                        \
  X(gelu, native) X(gelu_grad, native) X(silu, native) X(silu_grad, native) X(hardsigmoid, native) X(hardswish, native)        \
  X(hardswish_grad, native) X(mish, native) X(mish_grad, native) X(softsign, native) X(logsigmoid, native)                     \
  X(tanhshrink, native) X(prelu, native) X(softplus, native) X(softplus_grad, native) X(elu, native) X(selu, native)           \
  X(celu, native) X(elu_grad, native) X(leaky_relu, native) X(hardshrink, native) X(softshrink, native) X(threshold, native)   \
  X(clamp_grad, native)                                                                                                        \
  /* cast.inl */                                                                                                               \
  X(cast, native)                                                                                                              \
  /* recurrent.inl */                                                                                                          \
  X(lstm_cell, native) X(lstm_cell_grad, native) X(gru_cell, native) X(gru_cell_grad, native)
// clang-format on
