// The updates of optimizers. In a graph each one is a pure op; a plan writes the results in place if it can. The learning
// rate is a 0-d tensor of f32, of f64 or of the parameter's dtype.
//
// Every update takes one more optional operand, a bool[]. If it is false, nothing changes. So a step with gradients that are
// not finite can be skipped without reading a value on the host.
#if !defined(TAPEDECK_ENGINE_OPS_OPTIMIZER_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_OPTIMIZER_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/optimizer.h>

namespace tapedeck TAPEDECK_API {

OP(sgd, {
            .doc = "w - lr (g + weight_decay w); w, g, lr",
            .traits = kCheap | kNoGradient,
            .inplace = {{0, 0}},
            .min_inputs = 3,
            .max_inputs = 4,
            .attrs = &attr_schema<SgdAttrs>(),
            .infer = [](Infer& f) { infer_step(f, 0, false); },
            .no_gradient = "an update of state",
            .examples = {"sgd(f32[3,5], f32[3,5], f32[] in (0.01,0.1)) {weight_decay=0.1}",
                         "sgd(f32[3,5], f32[3,5], f32[] in (0.01,0.1), bool[])"},
        })

OP(sgd_momentum,
   {
       .doc = "v' = momentum v + (1 - dampening) (g + weight_decay w), w' = w - lr v', or with nesterov w - lr (g + "
              "weight_decay w + "
              "momentum v'); w, g, v, [step count,] lr -> w', v'; with a count the first step does not dampen",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}},
       .min_inputs = 4,
       .max_inputs = 6,
       .min_outputs = 2,
       .max_outputs = 2,
       .attrs = &attr_schema<MomentumAttrs>(),
       .infer = [](Infer& f) { infer_sgd_momentum(f); },
       .no_gradient = "an update of state",
       .examples = {"sgd_momentum(f32[3,5], f32[3,5], f32[3,5], f32[] in (0.01,0.1)) {momentum=0.9}",
                    "sgd_momentum(f32[3,5], f32[3,5], f32[3,5], f32[] in (0.01,0.1), bool[]) {momentum=0.8, weight_decay=0.1, "
                    "nesterov=true}",
                    "sgd_momentum(f32[3,5], f32[3,5], f32[3,5], i64[] in (1,3), f32[] in (0.01,0.1)) {dampening=0.5}",
                    "sgd_momentum(f32[3,5], f32[3,5], f32[3,5], i64[] in (1,3), f32[] in (0.01,0.1), bool[]) {dampening=0.5}"},
   })

OP(adamw,
   {
       .doc = "AdamW (Loshchilov and Hutter, 2019); w, g, m, v, step count, lr -> w', m', v'",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}, {2, 3}},
       .min_inputs = 6,
       .max_inputs = 7,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<AdamAttrs>(),
       .infer = [](Infer& f) { infer_step(f, 2, true); },
       .no_gradient = "an update of state",
       .examples = {"adamw(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))",
                    "adamw(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1), bool[])"},
   })

OP(adam,
   {
       .doc =
           "Adam (Kingma and Ba, 2015), which decays by adding weight_decay w to g; w, g, m, v, step count, lr -> w', m', v'",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}, {2, 3}},
       .min_inputs = 6,
       .max_inputs = 7,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<AdamAttrs>(),
       .infer = [](Infer& f) { infer_step(f, 2, true); },
       .no_gradient = "an update of state",
       .examples =
           {"adam(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1)) {weight_decay=0.1}",
            "adam(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1), bool[])"},
   })

OP(adamw_amsgrad, {
                      .doc = "adamw with the largest v so far, x, in place of v (Reddi et al., 2018); w, g, m, v, x, step "
                             "count, lr -> w', m', v', x'",
                      .traits = kCheap | kNoGradient,
                      .inplace = {{0, 0}, {1, 2}, {2, 3}, {3, 4}},
                      .min_inputs = 7,
                      .max_inputs = 8,
                      .min_outputs = 4,
                      .max_outputs = 4,
                      .attrs = &attr_schema<AdamAttrs>(),
                      .infer = [](Infer& f) { infer_step(f, 3, true); },
                      .no_gradient = "an update of state",
                      .examples = {"adamw_amsgrad(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5] in (0,1), i64[] in "
                                   "(1,9), f32[] in (0.01,0.1))",
                                   "adamw_amsgrad(f32[7], f32[7], f32[7], f32[7] in (0,1), f32[7] in (0,1), i64[] in (1,9), "
                                   "f32[] in (0.01,0.1), bool[]) "
                                   "{weight_decay=0.1}"},
                  })

OP(adam_amsgrad, {
                     .doc = "adam with the largest v so far, x, in place of v (Reddi et al., 2018); w, g, m, v, x, step count, "
                            "lr -> w', m', v', x'",
                     .traits = kCheap | kNoGradient,
                     .inplace = {{0, 0}, {1, 2}, {2, 3}, {3, 4}},
                     .min_inputs = 7,
                     .max_inputs = 8,
                     .min_outputs = 4,
                     .max_outputs = 4,
                     .attrs = &attr_schema<AdamAttrs>(),
                     .infer = [](Infer& f) { infer_step(f, 3, true); },
                     .no_gradient = "an update of state",
                     .examples = {"adam_amsgrad(f32[3,5], f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5] in (0,1), i64[] in "
                                  "(1,9), f32[] in (0.01,0.1))",
                                  "adam_amsgrad(f32[7], f32[7], f32[7], f32[7] in (0,1), f32[7] in (0,1), i64[] in (1,9), "
                                  "f32[] in (0.01,0.1), bool[]) "
                                  "{weight_decay=0.1}"},
                 })

OP(rmsprop, {
                .doc = "s' = alpha s + (1 - alpha) g^2, w' = w - lr g / (sqrt(s') + eps), with weight_decay w added to g; w, "
                       "g, s, lr -> w', s'",
                .traits = kCheap | kNoGradient,
                .inplace = {{0, 0}, {1, 2}},
                .min_inputs = 4,
                .max_inputs = 5,
                .min_outputs = 2,
                .max_outputs = 2,
                .attrs = &attr_schema<RmspropAttrs>(),
                .infer = [](Infer& f) { infer_step(f, 1, false); },
                .no_gradient = "an update of state",
                .examples = {"rmsprop(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[] in (0.01,0.1)) {weight_decay=0.1}",
                             "rmsprop(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[] in (0.01,0.1), bool[])"},
            })

OP(rmsprop_momentum,
   {
       .doc = "rmsprop with v' = momentum v + g / (sqrt(s') + eps), w' = w - lr v'; w, g, s, v, lr -> w', s', v'",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}, {2, 3}},
       .min_inputs = 5,
       .max_inputs = 6,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<RmspropAttrs>(),
       .infer = [](Infer& f) { infer_step(f, 2, false); },
       .no_gradient = "an update of state",
       .examples =
           {"rmsprop_momentum(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5], f32[] in (0.01,0.1)) {momentum=0.9}",
            "rmsprop_momentum(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5], f32[] in (0.01,0.1), bool[]) {momentum=0.9}"},
   })

OP(rmsprop_centered,
   {
       .doc = "rmsprop with a' = alpha a + (1 - alpha) g and s' - a'^2 in place of s'; w, g, s, a, lr -> w', s', a'",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}, {2, 3}},
       .min_inputs = 5,
       .max_inputs = 6,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<RmspropAttrs>(),
       .infer = [](Infer& f) { infer_step(f, 2, false); },
       .no_gradient = "an update of state",
       .examples = {"rmsprop_centered(f32[3,5], f32[3,5] in (1,2), f32[3,5] in (3,4), f32[3,5] in (-1,1), f32[] in (0.01,0.1)) "
                    "{alpha=0.9}",
                    "rmsprop_centered(f32[3,5], f32[3,5] in (1,2), f32[3,5] in (3,4), f32[3,5] in (-1,1), f32[] in (0.01,0.1), "
                    "bool[])"},
   })

OP(rmsprop_centered_momentum, {
                                  .doc = "rmsprop both centered and with momentum; w, g, s, a, v, lr -> w', s', a', v'",
                                  .traits = kCheap | kNoGradient,
                                  .inplace = {{0, 0}, {1, 2}, {2, 3}, {3, 4}},
                                  .min_inputs = 6,
                                  .max_inputs = 7,
                                  .min_outputs = 4,
                                  .max_outputs = 4,
                                  .attrs = &attr_schema<RmspropAttrs>(),
                                  .infer = [](Infer& f) { infer_step(f, 3, false); },
                                  .no_gradient = "an update of state",
                                  .examples = {"rmsprop_centered_momentum(f32[7], f32[7] in (1,2), f32[7] in (3,4), f32[7] in "
                                               "(-1,1), f32[7], f32[] in (0.01,0.1)) "
                                               "{momentum=0.5}",
                                               "rmsprop_centered_momentum(f32[7], f32[7] in (1,2), f32[7] in (3,4), f32[7] in "
                                               "(-1,1), f32[7], f32[] in (0.01,0.1), bool[])"},
                              })

OP(adagrad, {
                .doc = "s' = s + g^2, w' = w - lr / (1 + (count - 1) lr_decay) g / (sqrt(s') + eps), with weight_decay w added "
                       "to g; w, g, s, step "
                       "count, lr -> w', s'",
                .traits = kCheap | kNoGradient,
                .inplace = {{0, 0}, {1, 2}},
                .min_inputs = 5,
                .max_inputs = 6,
                .min_outputs = 2,
                .max_outputs = 2,
                .attrs = &attr_schema<AdagradAttrs>(),
                .infer = [](Infer& f) { infer_step(f, 1, true); },
                .no_gradient = "an update of state",
                .examples = {"adagrad(f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1)) "
                             "{lr_decay=0.1, weight_decay=0.1}",
                             "adagrad(f32[3,5], f32[3,5], f32[3,5] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1), bool[])"},
            })

OP(adadelta,
   {
       .doc =
           "s' = rho s + (1 - rho) g^2, u = sqrt(d + eps) / sqrt(s' + eps) g, d' = rho d + (1 - rho) u^2, w' = w - lr u, with "
           "weight_decay w added to g; w, g, s, d, lr -> w', s', d'",
       .traits = kCheap | kNoGradient,
       .inplace = {{0, 0}, {1, 2}, {2, 3}},
       .min_inputs = 5,
       .max_inputs = 6,
       .min_outputs = 3,
       .max_outputs = 3,
       .attrs = &attr_schema<AdadeltaAttrs>(),
       .infer = [](Infer& f) { infer_step(f, 2, false); },
       .no_gradient = "an update of state",
       .examples =
           {"adadelta(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5] in (0,1), f32[] in (0.01,0.1)) {weight_decay=0.1}",
            "adadelta(f32[3,5], f32[3,5], f32[3,5] in (0,1), f32[3,5] in (0,1), f32[] in (0.01,0.1), bool[])"},
   })

OP(lion, {
             .doc = "w' = w - lr (sign(beta1 m + (1 - beta1) g) + weight_decay w), m' = beta2 m + (1 - beta2) g (Chen et al., "
                    "2023); w, g, m, lr "
                    "-> w', m'",
             .traits = kCheap | kNoGradient,
             .inplace = {{0, 0}, {1, 2}},
             .min_inputs = 4,
             .max_inputs = 5,
             .min_outputs = 2,
             .max_outputs = 2,
             .attrs = &attr_schema<LionAttrs>(),
             .infer = [](Infer& f) { infer_step(f, 1, false); },
             .no_gradient = "an update of state",
             .examples = {"lion(f32[3,5], f32[3,5], f32[3,5], f32[] in (0.01,0.1)) {weight_decay=0.1}",
                          "lion(f32[3,5], f32[3,5], f32[3,5], f32[] in (0.01,0.1), bool[])"},
         })

OP(count_next, {
                   .doc = "a step counter plus one",
                   .traits = kNoGradient,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 2,
                   .infer = infer_count_next,
                   .no_gradient = "an update of state",
                   .examples = {"count_next(i64[] in (0,100))", "count_next(i64[] in (0,100), bool[])"},
               })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors: the optimizers of engine/nn/optimizer.h ----
#endif

}  // namespace TAPEDECK_API
#endif
