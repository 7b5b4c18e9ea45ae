// Mathematical functions of one, two and three operands. Operands broadcast as in NumPy.
#if !defined(TAPEDECK_ENGINE_OPS_FUNCTIONS_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_FUNCTIONS_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/functions.h>

#include <limits>
#include <optional>
#include <type_traits>

namespace tapedeck TAPEDECK_API {

// ---- exponentials and logarithms ----

OP(exp2, {
             .doc = "2 to the power x",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), mul(b.y(), 0.69314718055994530942))); },
             .examples = {"exp2(f32[3,5])", "exp2(f32[0])"},
         })

OP(expm1, {
              .doc = "e to the power x, less 1; exact near 0",
              .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), add(b.y(), 1))); },
              .examples = {"expm1(f32[3,5])", "expm1(f32[2,1,3] in (-0.01,0.01))"},
          })

OP(log2, {
             .doc = "logarithm to base 2",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), mul(b.x(0), 0.69314718055994530942))); },
             .examples = {"log2(f32[3,5] in (0.1,4))"},
         })

OP(log10, {
              .doc = "logarithm to base 10",
              .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), mul(b.x(0), 2.30258509299404568402))); },
              .examples = {"log10(f32[3,5] in (0.1,4))"},
          })

OP(log1p, {
              .doc = "natural logarithm of 1 + x; exact near 0",
              .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), add(b.x(0), 1))); },
              .examples = {"log1p(f32[3,5] in (-0.8,4))", "log1p(f32[7] in (-0.01,0.01))"},
          })

// ---- trigonometric and hyperbolic functions ----

OP(tan, {
            .doc = "tangent",
            .traits = kElementwise | kAnyStrides | kFullPrecision,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), add(square(b.y()), 1))); },
            .cost = cost_of_function<40>,
            .examples = {"tan(f32[3,5] in (-1.2,1.2))"},
        })

OP(asin, {
             .doc = "inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1]",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), rsqrt(one_minus_square(b.x(0))))); },
             .examples = {"asin(f32[3,5] in (-0.9,0.9))"},
         })

OP(acos, {
             .doc = "inverse cosine, in [0, pi]; NaN outside [-1, 1]",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, neg(mul(b.dy(), rsqrt(one_minus_square(b.x(0)))))); },
             .examples = {"acos(f32[3,5] in (-0.9,0.9))"},
         })

OP(atan, {
             .doc = "inverse tangent, in [-pi/2, pi/2]",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), add(square(b.x(0)), 1))); },
             .examples = {"atan(f32[3,5])", "atan(f32[4] in (-9,9))"},
         })

OP(sinh, {
             .doc = "hyperbolic sine",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), cosh(b.x(0)))); },
             .examples = {"sinh(f32[3,5])"},
         })

OP(cosh, {
             .doc = "hyperbolic cosine",
             .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), sinh(b.x(0)))); },
             .examples = {"cosh(f32[3,5])"},
         })

OP(asinh, {
              .doc = "inverse hyperbolic sine",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), rsqrt(add(square(b.x(0)), 1)))); },
              .examples = {"asinh(f32[3,5])"},
          })

OP(acosh, {
              .doc = "inverse hyperbolic cosine, not negative; NaN below 1",
              .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), rsqrt(mul(sub(b.x(0), 1), add(b.x(0), 1))))); },
              .examples = {"acosh(f32[3,5] in (1.2,4))"},
          })

OP(atanh, {
              .doc = "inverse hyperbolic tangent; NaN outside [-1, 1]",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), one_minus_square(b.x(0)))); },
              .examples = {"atanh(f32[3,5] in (-0.9,0.9))"},
          })

// ---- error functions, and the gamma function and its derivatives ----

OP(erf, {
            .doc = "error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), mul(exp(neg(square(b.x(0)))), 1.12837916709551257390))); },
            .examples = {"erf(f32[3,5])", "erf(f32[0])"},
        })

OP(erfc, {
             .doc = "1 - erf(x), exact for large x",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), mul(exp(neg(square(b.x(0)))), -1.12837916709551257390))); },
             .examples = {"erfc(f32[3,5])", "erfc(f32[6] in (2,5))"},
         })

OP(erfinv, {
               .doc = "inverse of erf; NaN outside [-1, 1]",
               .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
               .inplace = {{0, 0}},
               .min_inputs = 1,
               .max_inputs = 1,
               .infer = infer_float,
               .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), mul(exp(square(b.y())), 0.88622692545275801365))); },
               .examples = {"erfinv(f32[3,5] in (-0.9,0.9))"},
           })

OP(lgamma, {
               .doc = "logarithm of |gamma(x)|",
               .traits = kElementwise | kAnyStrides | kFullPrecision,
               .inplace = {{0, 0}},
               .min_inputs = 1,
               .max_inputs = 1,
               .infer = infer_float,
               .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), digamma(b.x(0)))); },
               .cost = cost_of_function<60>,
               .examples = {"lgamma(f32[3,5] in (0.5,6))", "lgamma(f32[4] in (-0.8,-0.2))"},
           })

OP(digamma, {
                .doc = "derivative of lgamma; NaN at negative integers",
                .traits = kElementwise | kAnyStrides | kFullPrecision,
                .inplace = {{0, 0}},
                .min_inputs = 1,
                .max_inputs = 1,
                .infer = infer_float,
                .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), polygamma(1, b.x(0)))); },
                .cost = cost_of_function<80>,
                .examples = {"digamma(f32[3,5] in (0.5,6))", "digamma(f32[4] in (-0.8,-0.2))"},
            })

OP(polygamma, {
                  .doc = "n-th derivative of digamma, 1 <= n <= 20",
                  .traits = kElementwise | kAnyStrides | kFullPrecision,
                  .inplace = {{0, 0}},
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .attrs = &attr_schema<PolygammaAttrs>(),
                  .infer = infer_polygamma,
                  .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), polygamma(b.attributes<PolygammaAttrs>().n + 1, b.x(0)))); },
                  .cost = cost_of_function<400>,
                  .examples = {"polygamma(f32[3,5] in (1,6)) {n=1}", "polygamma(f32[4] in (2,6)) {n=3}",
                               "polygamma(f32[4] in (-0.7,-0.3)) {n=2}"},
              })

// ---- rounding: the gradient is zero between jumps, so none flows ----

OP(floor, {
              .doc = "the largest whole number <= x; integers stay",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_number,
              .no_gradient = "the result is constant between jumps",
              .examples = {"floor(f32[3,5])", "floor(i32[4])", "floor(f32[0])"},
          })

OP(ceil, {
             .doc = "the smallest whole number >= x; integers stay",
             .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_number,
             .no_gradient = "the result is constant between jumps",
             .examples = {"ceil(f32[3,5])", "ceil(i32[4])", "ceil(f32[0])"},
         })

OP(round, {
              .doc = "the nearest whole number, halves to even; integers stay",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_number,
              .no_gradient = "the result is constant between jumps",
              .examples = {"round(f32[3,5])", "round(i32[4])", "round(f32[0])"},
          })

OP(trunc, {
              .doc = "x without its fraction; integers stay",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_number,
              .no_gradient = "the result is constant between jumps",
              .examples = {"trunc(f32[3,5])", "trunc(i32[4])", "trunc(f32[0])"},
          })

OP(frac, {
             .doc = "x - trunc(x), with the sign of x",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, b.dy()); },
             .examples = {"frac(f32[3,5] in (1.1,1.9))", "frac(f32[4] in (-0.9,-0.1))"},
         })

OP(reciprocal, {
                   .doc = "1 / x",
                   .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_float,
                   .vjp = [](Vjp& b) { b.dx(0, neg(mul(b.dy(), square(b.y())))); },
                   .examples = {"reciprocal(f32[3,5] in (0.5,2))", "reciprocal(f32[0])"},
               })

OP(clamp, {
              .doc = "min(max(x, min), max); the gradient passes where min < x < max; bounds of integers are whole",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .attrs = &attr_schema<ClampAttrs>(),
              .infer = infer_clamp,
              .vjp = [](Vjp& b) { clamp_vjp(b); },
              .examples = {"clamp(f32[3,5]) {min=-0.5, max=0.75}", "clamp(f32[4,1]) {min=0.0}",
                           "clamp(i32[6]) {min=1.0, max=2.0}", "clamp(f32[0]) {max=6.0}"},
          })

OP(nan_to_num, {
                   .doc = "numbers in place of NaN, inf and -inf; the gradient passes where x is finite",
                   .traits = kElementwise | kCheap | kAnyStrides,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = &attr_schema<NanToNumAttrs>(),
                   .infer = infer_float,
                   .vjp = [](Vjp& b) { b.dx(0, where(isfinite(b.x(0)), b.dy(), 0)); },
                   .examples = {"nan_to_num(f32[3,5]) {nan=0.0, posinf=1e+30, neginf=-1e+30}"},
               })

// ---- tests of numbers: bool results ----

OP(isnan, {
              .doc = "whether x is NaN",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_test,
              .no_gradient = "the result is bool",
              .examples = {"isnan(f32[3,5])", "isnan(i32[4])"},
          })

OP(isinf, {
              .doc = "whether x is inf or -inf",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_test,
              .no_gradient = "the result is bool",
              .examples = {"isinf(f32[3,5])", "isinf(i32[4])"},
          })

OP(isfinite, {
                 .doc = "whether x is neither infinite nor NaN",
                 .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .infer = infer_test,
                 .no_gradient = "the result is bool",
                 .examples = {"isfinite(f32[3,5])", "isfinite(i32[4])"},
             })

OP(isclose, {
                .doc = "|a - b| <= atol + rtol |b|, or a == b, or both NaN with equal_nan",
                .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                .min_inputs = 2,
                .max_inputs = 2,
                .attrs = &attr_schema<IsCloseAttrs>(),
                .infer = infer_isclose,
                .no_gradient = "the result is bool",
                .examples = {"isclose(f32[3,5], f32[5]) {rtol=0.1, atol=0.5}", "isclose(i32[3], i32[]) {}"},
            })

// ---- functions of two operands ----

OP(remainder,
   {
       .doc = "a - b floor(a / b), with the sign of b as in Python; an integer divided by zero is an error",
       .traits = kElementwise | kAnyStrides,
       .inplace = {{0, 0}, {0, 1}},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_broadcast_number,
       .vjp =
           [](Vjp& b) {
             b.dx(0, b.dy());
             if (b.needs(1)) b.dx(1, neg(mul(b.dy(), floor_divide(b.x(0), b.x(1)))));
           },
       .examples = {"remainder(f32[3,5] in (2.1,2.9), f32[3,5] in (1,1.04))",
                    "remainder(f32[3,5] in (-1.9,-1.1), f32[5] in (1,1.05))", "remainder(i32[3,5] in (-9,9), i32[5] in (1,5))"},
   })

OP(fmod, {
             .doc = "a - b trunc(a / b), with the sign of a as in C; an integer divided by zero is an error",
             .traits = kElementwise | kAnyStrides,
             .inplace = {{0, 0}, {0, 1}},
             .min_inputs = 2,
             .max_inputs = 2,
             .infer = infer_broadcast_number,
             .vjp =
                 [](Vjp& b) {
                   b.dx(0, b.dy());
                   if (b.needs(1)) b.dx(1, neg(mul(b.dy(), trunc(div(b.x(0), b.x(1))))));
                 },
             .examples = {"fmod(f32[3,5] in (2.1,2.9), f32[3,5] in (1,1.04))",
                          "fmod(f32[3,5] in (-1.9,-1.1), f32[5] in (1,1.05))", "fmod(i32[3,5] in (-9,9), i32[5] in (1,5))"},
         })

OP(floor_divide,
   {
       .doc = "floor(a / b) of the exact quotient; an integer divided by zero is an error",
       .traits = kElementwise | kAnyStrides | kNoGradient,
       .inplace = {{0, 0}, {0, 1}},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_broadcast_number,
       .no_gradient = "the result is constant between jumps",
       .examples = {"floor_divide(f32[3,5], f32[3,5] in (0.5,2))", "floor_divide(i32[3,5] in (-9,9), i32[5] in (1,5))"},
   })

OP(atan2, {
              .doc = "the angle of the point (b, a), in [-pi, pi]; the gradient at the origin is 0",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}, {0, 1}},
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_broadcast_float,
              .vjp =
                  [](Vjp& b) {
                    const Tensor square_of_radius = add(square(b.x(0)), square(b.x(1)));
                    const Tensor d = div(b.dy(), where(equal(square_of_radius, 0), 1, square_of_radius));
                    if (b.needs(0)) b.dx(0, mul(d, b.x(1)));
                    if (b.needs(1)) b.dx(1, neg(mul(d, b.x(0))));
                  },
              .examples = {"atan2(f32[3,5], f32[3,5] in (0.5,2))", "atan2(f32[3,1] in (0.5,2), f32[5])"},
          })

OP(hypot, {
              .doc = "sqrt(a^2 + b^2) without overflow",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}, {0, 1}},
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_broadcast_float,
              .vjp =
                  [](Vjp& b) {
                    if (b.needs(0)) b.dx(0, mul(b.dy(), div(b.x(0), b.y())));
                    if (b.needs(1)) b.dx(1, mul(b.dy(), div(b.x(1), b.y())));
                  },
              .examples = {"hypot(f32[3,5], f32[3,5] in (0.5,2))", "hypot(f32[3,1] in (0.5,2), f32[5])"},
          })

OP(logaddexp, {
                  .doc = "log(exp(a) + exp(b)) without overflow",
                  .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
                  .inplace = {{0, 0}, {0, 1}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_broadcast_float,
                  .vjp =
                      [](Vjp& b) {
                        const Tensor gap = sub(b.x(0), b.x(1));
                        if (b.needs(0)) b.dx(0, mul(b.dy(), sigmoid(gap)));
                        if (b.needs(1)) b.dx(1, mul(b.dy(), sigmoid(neg(gap))));
                      },
                  .examples = {"logaddexp(f32[3,5], f32[3,5])", "logaddexp(f32[3,1], f32[5] in (-9,9))"},
              })

OP(copysign, {
                 .doc = "|a| with the sign of b, which gets no gradient; the gradient at a = 0 is 0",
                 .traits = kElementwise | kCheap | kAnyStrides,
                 .inplace = {{0, 0}, {0, 1}},
                 .min_inputs = 2,
                 .max_inputs = 2,
                 .infer = infer_broadcast_float,
                 .vjp =
                     [](Vjp& b) {
                       const Tensor turned = not_equal(less(b.x(0), 0), less(b.y(), 0));
                       b.dx(0, where(equal(b.x(0), 0), 0, where(turned, neg(b.dy()), b.dy())));
                     },
                 .examples = {"copysign(f32[3,5] in (0.5,2), f32[3,5])", "copysign(f32[3,5] in (-2,-0.5), f32[5])"},
             })

OP(lerp, {
             .doc = "a + weight (b - a), exact at weights 0 and 1",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}, {0, 1}, {0, 2}},
             .min_inputs = 3,
             .max_inputs = 3,
             .infer = infer_broadcast_float,
             .vjp =
                 [](Vjp& b) {
                   if (b.needs(0)) b.dx(0, mul(b.dy(), sub(1, b.x(2))));
                   if (b.needs(1)) b.dx(1, mul(b.dy(), b.x(2)));
                   if (b.needs(2)) b.dx(2, mul(b.dy(), sub(b.x(1), b.x(0))));
                 },
             .examples = {"lerp(f32[3,5], f32[3,5], f32[])", "lerp(f32[3,1], f32[5], f32[3,5] in (0,1))",
                          "lerp(f32[0], f32[], f32[])"},
         })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

#define TAPEDECK_BINARY(f)                                                                     \
  inline Tensor f(const Arg& a, const Arg& b) {                                                \
    if (same_dtype(a, b)) return apply(ops::f, {&a.tensor(), &b.tensor()}, nullptr, a.site()); \
    auto [x, y] = promoted(#f, a, b);                                                          \
    return apply(ops::f, {&x, &y}, nullptr, a.site());                                         \
  }
#define TAPEDECK_UNARY(f) \
  inline Tensor f(const Arg& x) { return apply(ops::f, {&x.tensor()}, nullptr, x.site()); }

// Elementwise functions for f32 and f64; f16 and bf16 are computed in f32.
TAPEDECK_UNARY(exp2)
TAPEDECK_UNARY(expm1)
TAPEDECK_UNARY(log2)
TAPEDECK_UNARY(log10)
TAPEDECK_UNARY(log1p)
TAPEDECK_UNARY(tan)
TAPEDECK_UNARY(asin)
TAPEDECK_UNARY(acos)
TAPEDECK_UNARY(atan)
TAPEDECK_UNARY(sinh)
TAPEDECK_UNARY(cosh)
TAPEDECK_UNARY(asinh)
TAPEDECK_UNARY(acosh)
TAPEDECK_UNARY(atanh)
TAPEDECK_UNARY(erf)
TAPEDECK_UNARY(erfc)
TAPEDECK_UNARY(erfinv)
TAPEDECK_UNARY(lgamma)
TAPEDECK_UNARY(digamma)
TAPEDECK_UNARY(reciprocal)
TAPEDECK_UNARY(frac)
// Elementwise functions for all numbers. The rounding functions keep the dtype; isnan, isinf and isfinite return bool.
TAPEDECK_UNARY(floor)
TAPEDECK_UNARY(ceil)
TAPEDECK_UNARY(round)
TAPEDECK_UNARY(trunc)
TAPEDECK_UNARY(isnan)
TAPEDECK_UNARY(isinf)
TAPEDECK_UNARY(isfinite)
// Operands broadcast and promote as in add(). The first three functions also take integers.
TAPEDECK_BINARY(remainder)
TAPEDECK_BINARY(fmod)
TAPEDECK_BINARY(floor_divide)
TAPEDECK_BINARY(atan2)
TAPEDECK_BINARY(hypot)
TAPEDECK_BINARY(logaddexp)
TAPEDECK_BINARY(copysign)
#undef TAPEDECK_BINARY
#undef TAPEDECK_UNARY

// The n-th derivative of digamma; polygamma(0, x) is digamma(x).
Tensor polygamma(std::int64_t n, const Arg& x);
// min(max(x, min), max). The bounds must be whole numbers if x has an integer dtype.
Tensor clamp(const Arg& x, double min = -std::numeric_limits<double>::infinity(),
             double max = std::numeric_limits<double>::infinity());
// The same with bounds that are integers. Throws TypeError if no double equals one of them.
template <class Min, class Max>
requires(std::is_integral_v<Min>&& std::is_integral_v<Max>&& std::is_signed_v<Min>&& std::is_signed_v<Max>) Tensor
    clamp(const Arg& x, Min min, Max max) {
  const double low = exact_double("clamp", min, x.site());
  return clamp(x, low, exact_double("clamp", max, x.site()));
}
template <class Min>
requires(std::is_integral_v<Min>&& std::is_signed_v<Min>) Tensor clamp(const Arg& x, Min min) {
  return clamp(x, exact_double("clamp", min, x.site()));
}
// Elementwise: whether |a - b| <= atol + rtol |b|.
Tensor isclose(const Arg& a, const Arg& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Replaces NaN by `nan` and infinities by `posinf` and `neginf`, or else by the largest and the smallest finite number of the
// dtype. Integers stay unchanged.
Tensor nan_to_num(const Arg& x, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
// a + weight (b - a). The weight is a number or a tensor. All three broadcast and promote.
Tensor lerp(const Arg& a, const Arg& b, const Arg& weight);
// x + value a b.
Tensor addcmul(const Arg& x, const Arg& a, const Arg& b, double value = 1);
#endif

}  // namespace TAPEDECK_API
#endif
