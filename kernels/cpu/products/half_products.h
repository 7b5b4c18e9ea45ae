// matmul, linear and addmm of f16 and bf16 numbers, with sums in f32. An element is rounded once, after its last product; the
// bias of linear is added before that, and addmm rounds the product and then the sum.
#pragma once

#include <tapedeck/kernels/cpu/products/half_rows.h>
#include <tapedeck/kernels/cpu/products/matrix.h>
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

// Computes c = a b, or c += a b if `add`, for row-major f32 sums c. H is F16 or Bf16. Rows of c lie c_stride elements apart,
// and have room for padded_columns() of them. Every sum takes its products in one order, whatever the sizes of a and b around
// it. One thread computes the product.
template <class H>
void multiply_halves(HalfProducts way, const Matrix<const Half>& a, const Matrix<const Half>& b, float* c,
                     std::int64_t c_stride, bool add);
constexpr std::int64_t padded_columns(std::int64_t n) { return (n + 31) / 32 * 32; }

}  // namespace tapedeck::kernels::cpu
