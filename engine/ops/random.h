// Random ops. Each is a pure function of an rng operand (seed and step) and of the path that names its random stream.
#if !defined(TAPEDECK_ENGINE_OPS_RANDOM_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_RANDOM_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/random.h>

namespace tapedeck TAPEDECK_API {

OP(uniform, {
                .doc = "uniform in [low, high)",
                .traits = kRandom | kNoGradient,
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<RandomAttrs>(),
                .infer = infer_random,
                .no_gradient = "a draw depends on the random state alone",
                .examples = {"uniform(i64[2] in (0,100)) {shape=[3,5], low=-1.0, high=1.0}",
                             "uniform(i64[2] in (0,100)) {shape=[7], dtype=f64}", "uniform(i64[2] in (0,100)) {shape=[0,3]}"},
            })

OP(normal, {
               .doc = "normal with mean low and deviation high",
               .traits = kRandom | kNoGradient,
               .min_inputs = 1,
               .max_inputs = 1,
               .attrs = &attr_schema<RandomAttrs>(),
               .infer = infer_random,
               .no_gradient = "a draw depends on the random state alone",
               .examples = {"normal(i64[2] in (0,100)) {shape=[3,5]}",
                            "normal(i64[2] in (0,100)) {shape=[7], dtype=f64, low=2.0, high=0.5}"},
           })

OP(trunc_normal,
   {
       .doc = "normal with a mean and a deviation, kept between low and high",
       .traits = kRandom | kNoGradient,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<TruncNormalAttrs>(),
       .infer = infer_trunc_normal,
       .no_gradient = "a draw depends on the random state alone",
       .examples = {"trunc_normal(i64[2] in (0,100)) {shape=[3,5]}",
                    "trunc_normal(i64[2] in (0,100)) {shape=[9], dtype=f64, mean=1.0, deviation=0.5, low=4.0, high=5.0}"},
   })

OP(randint, {
                .doc = "integers in [low, high), each as likely as any other; i32, i64 or u8",
                .traits = kRandom | kNoGradient,
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<RandintAttrs>(),
                .infer = infer_randint,
                .no_gradient = "integers have none",
                .examples = {"randint(i64[2] in (0,100)) {shape=[3,5], low=-7, high=8}",
                             "randint(i64[2] in (0,100)) {shape=[300], dtype=u8, high=256}",
                             "randint(i64[2] in (0,100)) {shape=[4], dtype=i32, high=2147483648}",
                             "randint(i64[2] in (0,100)) {shape=[0], high=1}"},
            })

OP(randperm, {
                 .doc = "the integers 0 ... n-1 in a random order; i64 or i32",
                 .traits = kRandom | kNoGradient,
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .attrs = &attr_schema<RandpermAttrs>(),
                 .infer = infer_randperm,
                 .no_gradient = "integers have none",
                 .examples = {"randperm(i64[2] in (0,100)) {n=300}", "randperm(i64[2] in (0,100)) {n=5, dtype=i32}",
                              "randperm(i64[2] in (0,100)) {n=0}"},
             })

OP(bernoulli, {
                  .doc = "1 with the probability that p holds, else 0; p, rng",
                  .traits = kRandom | kNoGradient,
                  .inplace = {{0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .attrs = &attr_schema<BernoulliAttrs>(),
                  .infer =
                      [](Infer& f) {
                        infer_require_float(f, f.inputs[0]);
                        require_state(f, f.inputs[1]);
                        infer_same(f);
                      },
                  .no_gradient = "0 or 1 does not vary smoothly with p",
                  .examples = {"bernoulli(f32[3,5] in (0,1), i64[2] in (0,100))", "bernoulli(f32[0], i64[2] in (0,100))"},
              })

OP(multinomial,
   {
       .doc = "classes drawn with probabilities in proportion to the rows of p; p [c] or [n,c], rng -> i64 [samples] or "
              "[n,samples]",
       .traits = kRandom | kNoGradient | kFullPrecision,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<MultinomialAttrs>(),
       .infer = infer_multinomial,
       .no_gradient = "integers have none",
       .workspace = [](std::span<const Type> inputs, std::span<const Type>, const void*) { return 16 * inputs[0].numel(); },
       .examples = {"multinomial(f32[5] in (0.1,1), i64[2] in (0,100)) {samples=3}",
                    "multinomial(f32[3,4] in (0.1,1), i64[2] in (0,100)) {samples=6, replacement=true}",
                    "multinomial(f32[0,4], i64[2] in (0,100)) {samples=2}"},
   })

OP(dropout, {
                .doc = "zero with probability p, else x / (1 - p); x, rng. Keeps no mask: backward draws it again",
                .traits = kRandom,
                .inplace = {{0, 0}},
                .min_inputs = 2,
                .max_inputs = 2,
                .attrs = &attr_schema<DropoutAttrs>(),
                .infer = infer_dropout,
                .vjp =
                    [](Vjp& b) {
                      b.dx(0, apply(ops::dropout, {&b.dy(), &b.x(1)}, b.attrs, b.site()));
                    },
                .examples = {"dropout(f32[3,5], i64[2] in (0,100)) {p=0.5}", "dropout(f32[300], i64[2] in (0,100)) {p=0.1}",
                             "dropout(f32[0], i64[2] in (0,100)) {p=0.0}"},
            })

OP(alpha_dropout,
   {
       .doc = "dropout to the lower limit of selu, keeping mean and deviation of normal x; x, rng. Keeps no mask: backward "
              "draws it again",
       .traits = kRandom,
       .inplace = {{0, 0}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<DropoutAttrs>(),
       .infer = infer_dropout,
       .vjp =
           [](Vjp& b) {  // dropout with the same stream drops the same elements
             const double p = b.attributes<DropoutAttrs>().p;
             b.dx(0, mul(apply(ops::dropout, {&b.dy(), &b.x(1)}, b.attrs, b.site()), kernels::AlphaDropout(p).scale * (1 - p)));
           },
       .examples = {"alpha_dropout(f32[3,5], i64[2] in (0,100)) {p=0.5}", "alpha_dropout(f32[300], i64[2] in (0,100)) {p=0.1}"},
   })

OP(rng_next, {
                 .doc = "the random state of the next step",
                 .traits = kNoGradient,
                 .inplace = {{0, 0}},
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .infer = infer_rng_next,
                 .no_gradient = "integers have none",
                 .examples = {"rng_next(i64[2] in (0,100))"},
             })

OP(fold_in, {
                .doc = "the random state of pass i of a loop: draws from it are independent of those of other passes; rng, i",
                .traits = kNoGradient,
                .min_inputs = 2,
                .max_inputs = 2,
                .attrs = &attr_schema<FoldInAttrs>(),
                .infer = infer_fold_in,
                .no_gradient = "integers have none",
                .examples = {"fold_in(i64[2] in (0,100), i64[] in (0,1000))",
                             "fold_in(i64[2] in (0,100), i64[] in (0,3)) {path=\"loop#1\"}"},
            })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Draws use this thread's random state (manual_seed, next_step). The stream of a draw is named by the module path of the call
// and by the number of the draw in this step.
Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = DType::f32,
               Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor normal(const Shape& shape, double mean = 0, double deviation = 1, DType dtype = DType::f32,
              Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor trunc_normal(const Shape& shape, double mean = 0, double deviation = 1, double low = -2, double high = 2,
                    DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor exponential(const Shape& shape, double rate = 1, DType dtype = DType::f32,
                   Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor gumbel(const Shape& shape, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype = DType::i64,
               Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor randperm(std::int64_t n, DType dtype = DType::i64, Site site = {__builtin_FILE(), __builtin_LINE()});
// Uniform in [0, 1) and standard normal, with the shape and dtype of x.
Tensor rand_like(const Arg& x);
Tensor randn_like(const Arg& x);
// 1 with probability p, else 0. The first form has one probability for each element, and the result has the shape and dtype
// of p.
Tensor bernoulli(const Arg& p);
Tensor bernoulli(const Shape& shape, double p, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor multinomial(const Arg& p, std::int64_t samples, bool replacement = false);

// dropout drops single elements. dropout2d drops whole channels of x [n,c,...]. alpha_dropout sets dropped elements to the
// lower limit of selu.
Tensor dropout(const Arg& x, double p);
Tensor dropout2d(const Arg& x, double p);
Tensor alpha_dropout(const Arg& x, double p);
#endif

}  // namespace TAPEDECK_API
#endif
