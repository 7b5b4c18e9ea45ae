// Normalizations, and ema() for their running statistics. An op that computes statistics also returns them, so that its
// gradient reads the statistics, x and weight, but not y. batch_norm_inference is given its statistics.
#if !defined(TAPEDECK_ENGINE_OPS_NORM_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_NORM_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/norm.h>

namespace tapedeck TAPEDECK_API {

OP(batch_norm, {
                   .doc = "(x - mean) / sqrt(variance + eps) [* weight [+ bias]] of x [n,c,...], statistics of each channel; "
                          "x, weight [c], bias [c] -> y, mean [c], variance [c]",
                   .traits = kFullPrecision,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 3,
                   .min_outputs = 3,
                   .max_outputs = 3,
                   .attrs = &attr_schema<BatchNormAttrs>(),
                   .infer = infer_batch_norm,
                   .vjp = vjp_batch_norm,
                   .cost = cost_norm,
                   .workspace = workspace_batch_norm,
                   .batch_strides = {0b1, 0b1},
                   .examples = {"batch_norm(f32[6,3], f32[3], f32[3])", "batch_norm(f32[3,2,3,7], f32[2], f32[2])",
                                "batch_norm(f32[4,3,2,2], f32[3]) {eps=0.1}", "batch_norm(f32[3,2,5])",
                                "batch_norm(f32[0,2,3], f32[2], f32[2])", "batch_norm(f32[2,3,17], f32[3], f32[3])"},
               })

OP(batch_norm_grad,
   {
       .doc = "gradient of batch_norm: x, dy, mean, variance, dmean, dvariance[, weight] -> dx[, dweight, dbias]",
       .traits = kFullPrecision,
       .inplace = {{0, 1}},
       .min_inputs = 6,
       .max_inputs = 7,
       .min_outputs = 1,
       .max_outputs = 3,
       .attrs = &attr_schema<BatchNormAttrs>(),
       .infer = infer_batch_norm_grad,
       .vjp = vjp_batch_norm_grad,
       .cost = cost_norm,
       .workspace = workspace_batch_norm,
       .batch_strides = {0b11, 0b1},
       .examples = {"batch_norm_grad(f32[4,3,5], f32[4,3,5], f32[3], f32[3] in (0.5,2), f32[3], f32[3], f32[3])",
                    "batch_norm_grad(f32[2,3,4,5], f32[2,3,4,5], f32[3], f32[3] in (0.5,2), f32[3], f32[3]) {eps=0.1}",
                    "batch_norm_grad(f32[0,3], f32[0,3], f32[3], f32[3] in (0.5,2), f32[3], f32[3], f32[3])"},
   })

OP(batch_norm_inference,
   {
       .doc = "batch_norm of x [n,c,...] with given statistics; x, mean [c], variance [c][, weight [c][, bias [c]]] -> y",
       .traits = kFullPrecision | kCheap,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 5,
       .attrs = &attr_schema<BatchNormAttrs>(),
       .infer = infer_batch_norm_inference,
       .vjp = vjp_batch_norm_inference,
       .workspace = workspace_batch_norm,
       .batch_strides = {0b1, 0b1},
       .examples = {"batch_norm_inference(f32[3,2,3,7], f32[2], f32[2] in (0.5,2), f32[2], f32[2])",
                    "batch_norm_inference(f32[5,3], f32[3], f32[3] in (0.5,2), f32[3]) {eps=0.1}",
                    "batch_norm_inference(f32[2,3,4], f32[3], f32[3] in (0.5,2))"},
   })

OP(layer_norm, {
                   .doc = "(x - mean) / sqrt(variance + eps) [* weight [+ bias]], statistics over the last `dims` dimensions; "
                          "weight and bias have their sizes -> y, mean, rstd",
                   .traits = kFullPrecision,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 3,
                   .min_outputs = 3,
                   .max_outputs = 3,
                   .attrs = &attr_schema<LayerNormAttrs>(),
                   .infer = infer_layer_norm,
                   .vjp = vjp_layer_norm,
                   .cost = cost_norm,
                   .examples = {"layer_norm(f32[4,7], f32[7], f32[7])", "layer_norm(f32[2,3,4,5], f32[4,5], f32[4,5]) {dims=2}",
                                "layer_norm(f32[3,17], f32[17]) {eps=0.1}", "layer_norm(f32[2,3,6])", "layer_norm(f32[5])",
                                "layer_norm(f32[0,4], f32[4], f32[4])"},
               })

OP(layer_norm_grad,
   {
       .doc = "gradient of layer_norm: x, dy, mean, rstd, dmean, drstd[, weight] -> dx[, dweight, dbias]",
       .traits = kFullPrecision,
       .inplace = {{0, 1}},
       .min_inputs = 6,
       .max_inputs = 7,
       .min_outputs = 1,
       .max_outputs = 3,
       .attrs = &attr_schema<LayerNormAttrs>(),
       .infer = infer_layer_norm_grad,
       .vjp = vjp_layer_norm_grad,
       .cost = cost_norm,
       .workspace = workspace_layer_norm_grad,
       .examples = {"layer_norm_grad(f32[4,7], f32[4,7], f32[4], f32[4] in (0.5,2), f32[4], f32[4], f32[7])",
                    "layer_norm_grad(f32[2,3,4,5], f32[2,3,4,5], f32[2,3], f32[2,3] in (0.5,2), f32[2,3], f32[2,3]) {dims=2}",
                    "layer_norm_grad(f32[0,4], f32[0,4], f32[0], f32[0], f32[0], f32[0], f32[4])"},
   })

OP(rms_norm,
   {
       .doc =
           "x / sqrt(mean(x^2) + eps) [* weight], the mean over the last `dims` dimensions; weight has their sizes -> y, rstd",
       .traits = kFullPrecision,
       .inplace = {{0, 0}},
       .min_inputs = 1,
       .max_inputs = 2,
       .min_outputs = 2,
       .max_outputs = 2,
       .attrs = &attr_schema<LayerNormAttrs>(),
       .infer = infer_rms_norm,
       .vjp = vjp_rms_norm,
       .cost = cost_norm,
       .examples = {"rms_norm(f32[4,7], f32[7])", "rms_norm(f32[2,3,4,5], f32[4,5]) {dims=2}",
                    "rms_norm(f32[2,3,18]) {eps=0.1}", "rms_norm(f32[0,4], f32[4])"},
   })

OP(rms_norm_grad, {
                      .doc = "gradient of rms_norm: x, dy, rstd, drstd[, weight] -> dx[, dweight]",
                      .traits = kFullPrecision,
                      .inplace = {{0, 1}},
                      .min_inputs = 4,
                      .max_inputs = 5,
                      .min_outputs = 1,
                      .max_outputs = 2,
                      .attrs = &attr_schema<LayerNormAttrs>(),
                      .infer = infer_rms_norm_grad,
                      .vjp = vjp_rms_norm_grad,
                      .cost = cost_norm,
                      .workspace = workspace_layer_norm_grad,
                      .examples = {"rms_norm_grad(f32[4,7], f32[4,7], f32[4] in (0.5,2), f32[4], f32[7])",
                                   "rms_norm_grad(f32[2,3,4,5], f32[2,3,4,5], f32[2,3] in (0.5,2), f32[2,3]) {dims=2}"},
                  })

OP(group_norm, {
                   .doc = "(x - mean) / sqrt(variance + eps) [* weight [+ bias]] of x [n,c,...], statistics of each of "
                          "`groups` runs of channels; "
                          "weight and bias [c] -> y, mean [n,groups], rstd [n,groups]",
                   .traits = kFullPrecision,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 3,
                   .min_outputs = 3,
                   .max_outputs = 3,
                   .attrs = &attr_schema<GroupNormAttrs>(),
                   .infer = infer_group_norm,
                   .vjp = vjp_group_norm,
                   .cost = cost_norm,
                   .batch_strides = {0b1, 0b1},
                   .examples = {"group_norm(f32[2,6,3,3], f32[6], f32[6]) {groups=3}",
                                "group_norm(f32[3,4,5], f32[4]) {groups=4, eps=0.1}", "group_norm(f32[2,6]) {groups=2}",
                                "group_norm(f32[2,4,17]) {groups=1}", "group_norm(f32[0,4,3], f32[4], f32[4]) {groups=2}"},
               })

OP(group_norm_grad,
   {
       .doc = "gradient of group_norm: x, dy, mean, rstd, dmean, drstd[, weight] -> dx[, dweight, dbias]",
       .traits = kFullPrecision,
       .inplace = {{0, 1}},
       .min_inputs = 6,
       .max_inputs = 7,
       .min_outputs = 1,
       .max_outputs = 3,
       .attrs = &attr_schema<GroupNormAttrs>(),
       .infer = infer_group_norm_grad,
       .vjp = vjp_group_norm_grad,
       .cost = cost_norm,
       .workspace = workspace_group_norm_grad,
       .batch_strides = {0b11, 0b1},
       .examples =
           {"group_norm_grad(f32[2,6,3], f32[2,6,3], f32[2,3], f32[2,3] in (0.5,2), f32[2,3], f32[2,3], f32[6]) {groups=3}",
            "group_norm_grad(f32[2,4,3,2], f32[2,4,3,2], f32[2,2], f32[2,2] in (0.5,2), f32[2,2], f32[2,2]) {groups=2}"},
   })

OP(ema, {
            .doc = "running + momentum (batch - running): one step of an exponential moving average; running, batch",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 2,
            .max_inputs = 2,
            .attrs = &attr_schema<EmaAttrs>(),
            .infer =
                [](Infer& f) {
                  infer_require_float(f, f.inputs[0]);
                  infer_like_first(f);
                },
            .vjp =
                [](Vjp& b) {
                  const double momentum = b.attributes<EmaAttrs>().momentum;
                  if (b.needs(0)) b.dx(0, mul(b.dy(), 1 - momentum));
                  if (b.needs(1)) b.dx(1, mul(b.dy(), momentum));
                },
            .examples = {"ema(f32[5], f32[5])", "ema(f32[3,5], f32[3,5]) {momentum=0.75}", "ema(f32[0], f32[0])"},
        })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Weight and bias may be undefined. A bias needs a weight.

struct BatchNormResult {
  Tensor y, mean, variance;  // the biased variance: the sum of squares divided by n
};
// For training: x [n,c,...] is normalized by its own statistics.
BatchNormResult batch_norm(const Arg& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
// For evaluation: x is normalized by the given statistics.
Tensor batch_norm_inference(const Arg& x, const Tensor& mean, const Tensor& variance, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5);
// running += momentum (batch - running), in place and without gradient history.
void ema_in_place(const Arg& running, const Tensor& batch, double momentum = 0.1);
// Normalizes over the last weight.rank() dimensions, or over the last `dims` dimensions if there is no weight.
Tensor layer_norm(const Arg& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5, std::int64_t dims = 1);
Tensor rms_norm(const Arg& x, const Tensor& weight = {}, double eps = 1e-5, std::int64_t dims = 1);
// x is [n,c,...]; weight and bias are [c]. instance_norm has one group for each channel.
Tensor group_norm(const Arg& x, std::int64_t groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
Tensor instance_norm(const Arg& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
// x / (k + alpha / size * sum of x^2 over `size` neighbouring channels) ^ beta, for x [n,c,...].
Tensor local_response_norm(const Arg& x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
// x / max(|x|, eps), where |x| is the p-norm along an axis. p is 1, 2 or infinity.
Tensor normalize(const Arg& x, double p = 2, std::int64_t axis = -1, double eps = 1e-12);
// exp(-x) / sum exp(-x) along an axis.
Tensor softmin(const Arg& x, std::int64_t axis = -1);
#endif

}  // namespace TAPEDECK_API
#endif
