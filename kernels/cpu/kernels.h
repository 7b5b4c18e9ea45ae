// CPU kernels by name, for tests that call them directly. The op blocks (engine/ops) declare the kernels that they name.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

// clang-format off
#define TAPEDECK_CPU_KERNELS(X)                                                                                                \
  /* elementwise */                                                                                                            \
  X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(pow)                                                                     \
  X(neg) X(abs) X(sign) X(exp) X(log) X(tanh) X(sigmoid) X(relu) X(sqrt) X(rsqrt) X(square) X(sin) X(cos)                      \
  X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or) X(logical_not)          \
  X(where) X(cast) X(copy) X(relu_grad) X(tanh_grad) X(sigmoid_grad)                                                           \
  /* reductions and products */                                                                                                \
  X(sum) X(mean) X(max) X(min) X(argmax) X(matmul)                                                                             \
  X(conv2d) X(conv2d_input_grad) X(conv2d_weight_grad) X(max_pool2d) X(max_pool2d_grad)                                        \
  /* movement */                                                                                                               \
  X(concat) X(pad) X(full) X(one_hot)                                                                                          \
  /* normalisation and loss */                                                                                                 \
  X(softmax) X(log_softmax) X(softmax_grad) X(log_softmax_grad) X(cross_entropy) X(cross_entropy_grad)                         \
  /* random and state */                                                                                                       \
  X(uniform) X(normal) X(dropout) X(rng_next) X(sgd) X(sgd_momentum) X(adamw) X(count_next)                                    \
  /* placeholder */                                                                                                            \
  X(opaque)
// clang-format on

#define TAPEDECK_DECLARE_KERNEL(name) void name(const KernelCall& call);
TAPEDECK_CPU_KERNELS(TAPEDECK_DECLARE_KERNEL)
#undef TAPEDECK_DECLARE_KERNEL

}  // namespace tapedeck::kernels::cpu
