// Products along listed axes: linear layers, einsum, and common cases of einsum.
#if !defined(TAPEDECK_ENGINE_OPS_LINEAR_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_LINEAR_H

#include <tapedeck/engine/ops/op_block.h>

#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

OP(linear,
   {
       .doc = "x [..,in] times w [in,out], plus bias [out] if there is one",
       .traits = kAnyStrides | kLowPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_linear,
       .vjp = vjp_linear,
       .cost =
           [](std::span<const Type> in, std::span<const Type> out, const void*) {
             Cost cost = cost_like_copy(in, out, nullptr);
             cost.flops = 2.0 * static_cast<double>(in[1].shape[0]) * static_cast<double>(out[0].numel());
             return cost;
           },
       .examples = {"linear(f32[3,4], f32[4,5], f32[5])", "linear(f32[2,3,4], f32[4,2])", "linear(f32[4], f32[4,3], f32[3])",
                    "linear(f32[2,1,3,4], f32[4,1], f32[1])", "linear(f32[2,0], f32[0,3], f32[3])",
                    "linear(f32[0,2], f32[2,3], f32[3])", "linear(f32[7,30], f32[30,40], f32[40])"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// y = x w + bias, over the last dimension of x. w is [in,out].
Tensor linear(const Arg& x, const Tensor& w);
Tensor linear(const Arg& x, const Tensor& w, const Tensor& bias);

// Sums of products by an equation: "ij,jk->ik", "bhqd,bhkd->bhqk", "...ij->...ji", "ii->i", "ij,j". Each letter is an index.
// Indices that the result does not list are summed. Without "->", the result lists the ellipsis and then the indices that
// occur once, in alphabetical order. A size of 1 broadcasts. The operands are multiplied from left to right.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Site site = {__builtin_FILE(), __builtin_LINE()});

Tensor dot(const Arg& a, const Tensor& b);    // for two vectors
Tensor outer(const Arg& a, const Tensor& b);  // [m] and [n] -> [m,n]
Tensor bmm(const Arg& a, const Tensor& b);    // [b,m,k] and [b,k,n] -> [b,m,n]
// The sum of products over pairs of axes. `count` pairs the last axes of a with the first axes of b.
Tensor tensordot(const Arg& a, const Tensor& b, int count = 2);
Tensor tensordot(const Arg& a, const Tensor& b, const Ints& axes_a, const Ints& axes_b);
Tensor trace(const Arg& x, std::int64_t offset = 0, std::int64_t axis1 = 0, std::int64_t axis2 = 1);  // the sum of a diagonal
#endif

}  // namespace TAPEDECK_API
#endif
