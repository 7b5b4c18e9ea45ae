// The matrix product.
#if !defined(TAPEDECK_ENGINE_OPS_MATMUL_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_MATMUL_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(matmul, {
               .doc = "matrix product of [..,m,k] and [..,k,n]; leading dimensions broadcast",
               .traits = kMatrixStrides | kLowPrecision | kNativeHalf,
               .min_inputs = 2,
               .max_inputs = 2,
               .infer = infer_matmul,
               .vjp = vjp_matmul,
               .cost =
                   [](std::span<const Type> in, std::span<const Type> out, const void*) {
                     const double k = static_cast<double>(in[0].shape[in[0].shape.rank - 1]);
                     Cost cost = cost_like_copy(in, out, nullptr);
                     cost.flops = 2.0 * k * static_cast<double>(out[0].numel());
                     return cost;
                   },
               .examples = {"matmul(f32[3,4], f32[4,5])", "matmul(f32[2,3,4], f32[4,5])", "matmul(f32[2,1,3,4], f32[5,4,2])",
                            "matmul(f32[3,0], f32[0,2])", "matmul(f32[2,2,3,4], f32[4,2])", "matmul(f32[3,4], f32[2,4,5])"},
           })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor matmul_vectors(const Tensor& a, const Tensor& b, Site site);  // matmul with a vector as operand
// The matrix product as in NumPy. A vector on the left counts as a row, and a vector on the right as a column. The dimension
// that the vector gains is dropped from the result.
inline Tensor matmul(const Arg& a, const Arg& b) {
  auto [x, y] = promoted("matmul", a, b);
  if (x.defined() && y.defined() && (x.rank() < 2 || y.rank() < 2)) return matmul_vectors(x, y, a.site());
  return apply(ops::matmul, {&x, &y}, nullptr, a.site());
}
#endif

}  // namespace TAPEDECK_API
#endif
