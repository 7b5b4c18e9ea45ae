// Losses. A loss that keeps no more memory as a composition of other ops is a function. Any other loss is an op of its own.
#if !defined(TAPEDECK_ENGINE_OPS_LOSS_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_LOSS_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/loss.h>

namespace tapedeck TAPEDECK_API {

// ---- classes ----

OP(cross_entropy,
   {
       .doc = "-log softmax(logits)[label] per label, or their mean or sum; logits [n,c,...], labels i32 or i64 [n,...], "
              "weights of classes [c] or none; under autocast the loss of half logits is f32",
       .traits = kFullPrecision | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = &attr_schema<CrossEntropyAttrs>(),
       .infer = infer_cross_entropy,
       .vjp = vjp_cross_entropy,
       .cost = cost_cross_entropy,
       .examples = {"cross_entropy(f32[4,3], i32[4] in (0,3))",
                    "cross_entropy(f32[4,5], i64[4] in (0,5)) {label_smoothing=0.1, reduction=\"sum\"}",
                    "cross_entropy(f32[2,3,5], i32[2,5] in (0,3)) {ignore_index=1, reduction=\"none\"}",
                    "cross_entropy(f32[6,3], i32[6] in (0,3), f32[3] in (0.5,2)) {label_smoothing=0.2}",
                    "cross_entropy(f32[2,3,2,2], i32[2,2,2] in (0,3), f32[3] in (0.5,2)) {ignore_index=0, reduction=\"none\"}",
                    "cross_entropy(f32[0,3], i32[0]) {reduction=\"sum\"}"},
   })

OP(cross_entropy_grad,
   {
       .doc = "gradient of cross_entropy for its logits; logits, labels, gradient of the loss, weights of classes or none",
       .traits = kFullPrecision | kNativeHalf,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 4,
       .attrs = &attr_schema<CrossEntropyAttrs>(),
       .infer = infer_cross_entropy_grad,
       .vjp = vjp_cross_entropy_grad,
       .cost = cost_cross_entropy,
       .examples = {"cross_entropy_grad(f32[4,3], i32[4] in (0,3), f32[])",
                    "cross_entropy_grad(f32[2,3,2], i32[2,2] in (0,3), f32[2,2]) {ignore_index=1, reduction=\"none\"}",
                    "cross_entropy_grad(f32[5,3], i64[5] in (0,3), f32[], f32[3] in (0.5,2)) {label_smoothing=0.2}"},
   })

OP(nll_loss,
   {
       .doc = "-log_probs[label] per label, or their mean or sum; log_probs [n,c,...], labels i32 or i64 [n,...], weights of "
              "classes [c] "
              "or none",
       .traits = kFullPrecision,
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = &attr_schema<NllAttrs>(),
       .infer = infer_nll_loss,
       .vjp = vjp_nll_loss,
       .examples = {"nll_loss(f32[4,3], i32[4] in (0,3))",
                    "nll_loss(f32[2,3,5], i64[2,5] in (0,3)) {ignore_index=1, reduction=\"none\"}",
                    "nll_loss(f32[6,3], i32[6] in (0,3), f32[3] in (0.5,2))", "nll_loss(f32[0,3], i32[0]) {reduction=\"sum\"}"},
   })

OP(nll_loss_grad,
   {
       .doc = "gradient of nll_loss for its log probabilities; labels, gradient of the loss, weights of classes or none",
       .traits = kFullPrecision | kCheap,
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = &attr_schema<NllGradAttrs>(),
       .infer = infer_nll_loss_grad,
       .vjp = vjp_nll_loss_grad,
       .examples =
           {"nll_loss_grad(i32[4] in (0,3), f32[]) {classes=3}",
            "nll_loss_grad(i32[2,5] in (0,3), f32[2,5], f32[3] in (0.5,2)) {classes=3, ignore_index=1, reduction=\"none\"}",
            "nll_loss_grad(i64[5] in (0,3), f32[], f32[3] in (0.5,2)) {classes=3}"},
   })

// ---- elementwise ----

OP(huber, {
              .doc = "d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)",
              .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .attrs = &attr_schema<HuberAttrs>(),
              .infer =
                  [](Infer& f) {
                    if (!(f.attributes<HuberAttrs>().delta > 0)) f.fail("delta must be above 0");
                    infer_float(f);
                  },
              .vjp =
                  [](Vjp& b) {
                    const double delta = b.attributes<HuberAttrs>().delta;
                    b.dx(0, mul(b.dy(), minimum(maximum(b.x(0), -delta), delta)));
                  },
              .examples = {"huber(f32[3,5])", "huber(f32[7]) {delta=0.25}", "huber(f32[0])"},
          })

OP(binary_cross_entropy,
   {
       .doc = "-(t log p + (1 - t) log(1 - p)) of probabilities p and targets t, with logarithms of at least -100",
       .traits = kElementwise | kAnyStrides | kFullPrecision,
       .inplace = {{0, 0}, {0, 1}},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_broadcast_float,
       .vjp =
           [](Vjp& b) {
             const Tensor &p = b.x(0), &t = b.x(1);
             if (b.needs(0)) b.dx(0, mul(b.dy(), div(sub(p, t), maximum(mul(p, sub(1, p)), 1e-12))));
             if (b.needs(1)) b.dx(1, mul(b.dy(), sub(maximum(log(sub(1, p)), -100), maximum(log(p), -100))));
           },
       .examples = {"binary_cross_entropy(f32[3,5] in (0.1,0.9), f32[3,5] in (0,1))",
                    "binary_cross_entropy(f32[3,5] in (0.1,0.9), f32[])"},
   })

OP(binary_cross_entropy_with_logits,
   {
       .doc = "binary_cross_entropy of sigmoid(x) and targets t, right in both tails; the positive part is weighted by a third "
              "operand or none",
       .traits = kElementwise | kAnyStrides | kFullPrecision,
       .inplace = {{0, 0}, {0, 1}, {0, 2}},
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_broadcast_float,
       .vjp = vjp_binary_cross_entropy_with_logits,
       .examples = {"binary_cross_entropy_with_logits(f32[3,5], f32[3,5] in (0,1))",
                    "binary_cross_entropy_with_logits(f32[3,5] in (-30,30), f32[])",
                    "binary_cross_entropy_with_logits(f32[2,3,5], f32[3,5] in (0,1), f32[5] in (0.5,3))",
                    "binary_cross_entropy_with_logits(f32[0], f32[0])"},
   })

OP(kl_div, {
               .doc = "t (log t - x) of log probabilities x and targets t, 0 where t is 0; with log_target: exp(t) (t - x)",
               .traits = kElementwise | kAnyStrides | kFullPrecision,
               .inplace = {{0, 0}, {0, 1}},
               .min_inputs = 2,
               .max_inputs = 2,
               .attrs = &attr_schema<KlDivAttrs>(),
               .infer = infer_broadcast_float,
               .vjp =
                   [](Vjp& b) {
                     const Tensor &x = b.x(0), &t = b.x(1);
                     const bool log_target = b.attributes<KlDivAttrs>().log_target;
                     if (b.needs(0)) b.dx(0, neg(mul(b.dy(), log_target ? exp(t) : t)));
                     if (b.needs(1)) b.dx(1, mul(b.dy(), log_target ? mul(exp(t), add(sub(t, x), 1)) : add(sub(log(t), x), 1)));
                   },
               .examples = {"kl_div(f32[3,5], f32[3,5] in (0.1,1))", "kl_div(f32[3,5], f32[5]) {log_target=true}",
                            "kl_div(f32[0], f32[0] in (0.1,1))"},
           })

// ---- sequences ----

OP(ctc_loss,
   {
       .doc = "connectionist temporal classification per sequence; log_probs [t,n,c], targets [n,s], input lengths [n], target "
              "lengths "
              "[n], integers i32 or i64",
       .traits = kFullPrecision,
       .min_inputs = 4,
       .max_inputs = 4,
       .attrs = &attr_schema<CtcAttrs>(),
       .infer = infer_ctc_loss,
       .vjp =
           [](Vjp& b) {
             b.dx(0, apply(ops::ctc_loss_grad, {&b.x(0), &b.x(1), &b.x(2), &b.x(3), &b.dy()}, b.attrs, b.site()));
           },
       .cost = cost_ctc,
       .workspace = [](std::span<const Type> inputs, std::span<const Type>, const void*) { return ctc_workspace(inputs, 2); },
       .examples =
           {"ctc_loss(f32[6,2,4] in (-3,0), i32[2,2] in (1,4), i32[2] in (5,7), i32[2] in (1,3))",
            "ctc_loss(f32[5,3,3] in (-3,0), i64[3,2] in (0,2), i64[3] in (5,6), i64[3] in (0,3)) {blank=2, zero_infinity=true}",
            "ctc_loss(f32[1,1,2] in (-3,0), i32[1,1] in (1,2), i32[1] in (1,2), i32[1] in (1,2))"},
   })

OP(ctc_loss_grad,
   {
       .doc = "gradient of ctc_loss for its log probabilities; the operands of ctc_loss and the gradient of the losses. "
              "Computes alpha again",
       .traits = kFullPrecision,
       .min_inputs = 5,
       .max_inputs = 5,
       .attrs = &attr_schema<CtcAttrs>(),
       .infer = infer_ctc_loss_grad,
       .vjp = nullptr,
       .no_gradient = "its derivative would need that of the recursion over time",
       .cost = cost_ctc,
       .workspace = [](std::span<const Type> inputs, std::span<const Type>,
                       const void*) { return ctc_workspace(inputs, inputs[0].shape[0] + 2); },
       .examples = {"ctc_loss_grad(f32[6,2,4] in (-3,0), i32[2,2] in (1,4), i32[2] in (5,7), i32[2] in (1,3), f32[2])"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----
//
// `reduction` is "mean", "sum" or "none". Unless a function says otherwise, both operands must have the same shape. A target
// that would broadcast is a TypeError, because it is usually a mistake.

struct CrossEntropyOptions {
  Tensor weights = {};               // one weight for each class, [c]; "mean" divides by the sum of the labels' weights
  std::int64_t ignore_index = -100;  // a row with this label adds nothing to the loss
  double label_smoothing = 0;        // in [0, 1]
  Name reduction = "mean";
};
struct NllOptions {
  Tensor weights = {};
  std::int64_t ignore_index = -100;
  Name reduction = "mean";
};
// logits or log_probs are [n,c] or [n,c,...]; labels are i32 or i64 [n,...]. cross_entropy also takes probabilities: a
// floating target with the shape of the logits. With such a target, the reduction "mean" divides by the number of rows.
Tensor cross_entropy(const Arg& logits, const Tensor& labels, const CrossEntropyOptions& options = {});
Tensor nll_loss(const Arg& log_probs, const Tensor& labels, const NllOptions& options = {});

Tensor mse_loss(const Arg& x, const Tensor& target, Name reduction = "mean");
Tensor l1_loss(const Arg& x, const Tensor& target, Name reduction = "mean");
Tensor huber_loss(const Arg& x, const Tensor& target, double delta = 1, Name reduction = "mean");
Tensor smooth_l1_loss(const Arg& x, const Tensor& target, double beta = 1,
                      Name reduction = "mean");  // huber_loss / beta; l1_loss if beta is 0
Tensor huber(const Arg& d, double delta = 1);

// `weight` and `pos_weight` broadcast to the shape of the operands.
struct BceOptions {
  Tensor weight = {};
  Tensor pos_weight = {};  // binary_cross_entropy_with_logits only
  Name reduction = "mean";
};
Tensor binary_cross_entropy(const Arg& p, const Tensor& target, const BceOptions& options = {});
Tensor binary_cross_entropy_with_logits(const Arg& x, const Tensor& target, const BceOptions& options = {});
// `reduction` may also be "batchmean": the sum divided by the first size, which is the mathematical definition of the
// divergence.
Tensor kl_div(const Arg& x, const Tensor& target, Name reduction = "mean", bool log_target = false);

// The elements of y are 1 or -1.
Tensor soft_margin_loss(const Arg& x, const Tensor& y, Name reduction = "mean");  // log(1 + exp(-y x))
Tensor hinge_embedding_loss(const Arg& x, const Tensor& y, double margin = 1,
                            Name reduction = "mean");  // x where y is 1, max(0, margin - x) where y is -1
Tensor margin_ranking_loss(const Arg& a, const Tensor& b, const Tensor& y, double margin = 0, Name reduction = "mean");

// a b / (max(|a|, eps) max(|b|, eps)), summed along the axis. The operands broadcast.
Tensor cosine_similarity(const Arg& a, const Tensor& b, std::int64_t axis = 1, double eps = 1e-8);
// a and b are [n,d] or [d]. The loss is 1 - cosine where y is 1, and max(0, cosine - margin) where y is -1.
Tensor cosine_embedding_loss(const Arg& a, const Tensor& b, const Tensor& y, double margin = 0, Name reduction = "mean");
// The p-norm of a - b + eps along the last axis.
Tensor pairwise_distance(const Arg& a, const Tensor& b, double p = 2, double eps = 1e-6, bool keepdims = false);
struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;  // uses the distance from positive to negative if it is the smaller one
  Name reduction = "mean";
};
Tensor triplet_margin_loss(const Arg& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options = {});

// exp(x) - t x with log_input, else x - t log(x + eps). `full` adds Stirling's approximation of log t!.
struct PoissonOptions {
  bool log_input = true;
  bool full = false;
  double eps = 1e-8;
  Name reduction = "mean";
};
Tensor poisson_nll_loss(const Arg& x, const Tensor& target, const PoissonOptions& options = {});
// (log v + (x - t)^2 / v) / 2 with v = max(variance, eps). The variance broadcasts to x. `full` adds log(2 pi) / 2.
Tensor gaussian_nll_loss(const Arg& x, const Tensor& target, const Tensor& variance, bool full = false, double eps = 1e-6,
                         Name reduction = "mean");

// log_probs [t,n,c]; targets [n,s] without blanks; lengths [n]. "mean" divides every loss by the length of its target first.
struct CtcOptions {
  std::int64_t blank = 0;
  bool zero_infinity = false;  // a target that no alignment can reach costs 0 instead of inf
  Name reduction = "mean";
};
Tensor ctc_loss(const Arg& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CtcOptions& options = {});
#endif

}  // namespace TAPEDECK_API
#endif
