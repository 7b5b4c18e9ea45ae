// Attention that never stores the matrix of scores. Forward keeps one logsumexp for each query, and backward computes the
// scores again in blocks.
#if !defined(TAPEDECK_ENGINE_OPS_ATTENTION_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_ATTENTION_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/attention.h>

namespace tapedeck TAPEDECK_API {

OP(scaled_dot_product_attention,
   {
       .doc = "softmax(scale q k^T + mask) v; "
              "q [b,h,t,d], k [b,h,s,d], v [b,h,s,e][, mask: bool (true: visible) or float, broadcast to [b,h,t,s]] "
              "-> y [b,h,t,e], logsumexp of the scores [b,h,t], at least f32; a query that sees no key gives 0 and -inf",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 3,
       .max_inputs = 4,
       .min_outputs = 2,
       .max_outputs = 2,
       .attrs = &attr_schema<AttentionAttrs>(),
       .infer = infer_attention,
       .vjp = vjp_attention,
       .cost = cost_attention,
       .examples = {"scaled_dot_product_attention(f32[2,3,5,4], f32[2,3,7,4], f32[2,3,7,6]) {scale=0.5}",
                    "scaled_dot_product_attention(f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,2]) {scale=0.7, causal=true}",
                    "scaled_dot_product_attention(f32[2,2,4,3], f32[2,2,5,3], f32[2,2,5,3], f32[2,1,4,5]) {scale=0.5}",
                    "scaled_dot_product_attention(f32[1,2,4,2], f32[1,2,3,2], f32[1,2,3,1], f32[1,3]) {scale=1.0, causal=true}",
                    "scaled_dot_product_attention(f32[1,1,3,2], f32[1,1,4,2], f32[1,1,4,1], bool[3,1] in (1,2)) {scale=1.0}",
                    "scaled_dot_product_attention(f32[1,1,70,3], f32[1,1,131,3], f32[1,1,131,2]) {scale=0.5}",
                    "scaled_dot_product_attention(f32[1,2,0,3], f32[1,2,4,3], f32[1,2,4,2]) {scale=1.0}"},
   })

OP(scaled_dot_product_attention_grad,
   {
       .doc = "gradient of scaled_dot_product_attention: q, k, v, y, logsumexp, dy, dlogsumexp[, mask] -> dq, dk, dv",
       .traits = kLowPrecision | kNativeHalf,
       .min_inputs = 7,
       .max_inputs = 8,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<AttentionAttrs>(),
       .infer = infer_attention_grad,
       .vjp = vjp_attention_grad,
       .cost = cost_attention_grad,
       .workspace = workspace_attention_grad,
       .examples =
           {"scaled_dot_product_attention_grad(f32[2,2,5,4], f32[2,2,7,4], f32[2,2,7,3], f32[2,2,5,3], f32[2,2,5] in (3,5), "
            "f32[2,2,5,3], f32[2,2,5]) {scale=0.5}",
            "scaled_dot_product_attention_grad(f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,2], f32[1,2,6,2], f32[1,2,6] in (3,5), "
            "f32[1,2,6,2], f32[1,2,6], bool[1,6]) {scale=0.7, causal=true}",
            "scaled_dot_product_attention_grad(f32[2,2,4,3], f32[2,2,3,3], f32[2,2,3,2], f32[2,2,4,2], f32[2,2,4] in (3,5), "
            "f32[2,2,4,2], f32[2,2,4], f32[2,1,1,3]) {scale=0.5, causal=true}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

struct AttentionOptions {
  Tensor mask = {};     // bool (true: visible) or q's dtype (added to the scores), broadcast to [b,h,t,s]
  bool causal = false;  // query i sees keys 0 to i only
  double scale = 0;     // the factor of the scores; 0: 1 / sqrt(d)
};
// q [b,h,t,d], k [b,h,s,d], v [b,h,s,e] -> [b,h,t,e]. Forward and backward take memory linear in t and s. Only the gradient
// of a float mask, if it is wanted, and second gradients take matrices of t * s elements.
Tensor scaled_dot_product_attention(const Arg& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});
#endif

}  // namespace TAPEDECK_API
#endif
