// Elementwise losses: huber, binary_cross_entropy, binary_cross_entropy_with_logits and kl_div, on the device. A reduction of
// the losses is a separate op.
#pragma once

#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/loss_scalar.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

void huber(const KernelCall& call) {
  const double delta = call.attributes<HuberAttrs>().delta;
  unary_floats_of(call, [&](auto) { return Huber{delta}; });
}

TAPEDECK_MAPPED(binary_cross_entropy, binary_floats, BinaryCrossEntropy)

void binary_cross_entropy_with_logits(const KernelCall& call) {
  if (call.n_inputs == 2) return binary_floats<BinaryCrossEntropyWithLogits>(call);
  ternary_floats<BinaryCrossEntropyWithLogits>(call);
}

void kl_div(const KernelCall& call) {
  if (call.attributes<KlDivAttrs>().log_target) return binary_floats<KlDivLogTarget>(call);
  binary_floats<KlDiv>(call);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
