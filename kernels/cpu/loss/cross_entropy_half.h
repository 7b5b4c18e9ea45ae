// cross_entropy and its gradient for scores of f16 and bf16, which are widened in near memory. Sums are f32; the loss is f32,
// or rounded once to the type of the scores.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

// The bits are those of the f32 kernels on widened operands; a gradient is rounded once. The gradient of the loss, and weights
// of classes, may be f32 or of the type of the scores.
void cross_entropy_half(const KernelCall& call);
void cross_entropy_grad_half(const KernelCall& call);

}  // namespace tapedeck::kernels::cpu
