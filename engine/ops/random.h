// Random ops: pure functions of an rng operand (seed, step) and the path that names their stream.
#if !defined(TAPEDECK_ENGINE_OPS_RANDOM_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_RANDOM_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(uniform, {
  .doc = "uniform in [low, high)",
  .traits = kRandom | kNoGradient,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<RandomAttrs>(),
  .infer = infer_random,
  .no_gradient = "the draw depends on integers alone",
  .examples = {"uniform(i64[2] in (0,100)) {shape=[3,5], low=-1.0, high=1.0}"},
})

OP(normal, {
  .doc = "normal with mean low and deviation high",
  .traits = kRandom | kNoGradient,
  .min_inputs = 1, .max_inputs = 1,
  .attrs = &attr_schema<RandomAttrs>(),
  .infer = infer_random,
  .no_gradient = "the draw depends on integers alone",
  .examples = {"normal(i64[2] in (0,100)) {shape=[3,5]}"},
})

OP(dropout, {
  .doc = "zero with probability p, else x / (1 - p); x, rng. Keeps no mask: backward draws it again",
  .traits = kRandom,
  .inplace = {{0, 0}},
  .min_inputs = 2, .max_inputs = 2,
  .attrs = &attr_schema<DropoutAttrs>(),
  .infer = [](Infer& f) {
    infer_require_float(f, f.inputs[0]);
    require_state(f, f.inputs[1]);
    const double p = f.attributes<DropoutAttrs>().p;
    if (!(p >= 0 && p < 1)) f.fail("p must be at least 0 and below 1");
    f.outputs.assign(1, f.inputs[0]);
  },
  .vjp = [](Vjp& b) {
    const auto& a = b.attributes<DropoutAttrs>();
    b.dx(0, apply(ops::dropout, {&b.dy(), &b.x(1)}, &a, b.site()));
  },
  .examples = {"dropout(f32[3,5], i64[2] in (0,100)) {p=0.5}"},
})

OP(rng_next, {
  .doc = "the random state of the next step",
  .traits = kNoGradient,
  .inplace = {{0, 0}},
  .min_inputs = 1, .max_inputs = 1,
  .infer = infer_rng_next,
  .no_gradient = "the state is integers",
  .examples = {"rng_next(i64[2] in (0,100))"},
})

#ifndef TAPEDECK_DEFINE_OPS
// ---- what authors call ----

// Draws come from this thread's random state (manual_seed, next_step), under the path of the modules around the call and the
// occurrence of the call in the step.
Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = DType::f32,
               Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor normal(const Shape& shape, double mean = 0, double deviation = 1, DType dtype = DType::f32,
              Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor dropout(const Arg& x, double p);
#endif

}  // namespace tapedeck
#endif
