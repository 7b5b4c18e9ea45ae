// Attention of f16 and bf16 numbers. Scores and sums are f32; the probabilities and the gradient of the scores are rounded to
// halves before the products that read them.
#pragma once

#include <tapedeck/kernels/cpu/products/half_products.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

void attention_half(const KernelCall& call, HalfProducts way);

// The workspace holds the f32 sums of dq, dk and dv.
void attention_grad_half(const KernelCall& call, HalfProducts way);
std::int64_t attention_grad_half_workspace(const std::int64_t* q_sizes, const std::int64_t* v_sizes);

}  // namespace tapedeck::kernels::cpu
