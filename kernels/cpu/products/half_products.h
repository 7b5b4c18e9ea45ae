// matmul, linear and addmm of f16 and bf16 numbers, with sums in f32. An element is rounded once, after its last product; the
// bias of linear is added before that, and addmm rounds the product and then the sum.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

// The instructions that multiply halves. `pairs` is AVX-512 BF16 (bf16_pairs.h); `f32` turns blocks into f32 numbers first.
// They round sums differently.
enum class HalfProducts : std::uint8_t { f32, pairs };

// The way for this element type on this processor.
HalfProducts half_products(DType dtype);

void matmul_half(const KernelCall& call, HalfProducts way);
void linear_half(const KernelCall& call, HalfProducts way);
void addmm_half(const KernelCall& call, HalfProducts way);

}  // namespace tapedeck::kernels::cpu
