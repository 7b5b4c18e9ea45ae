// Activations, for floating types. The gradient reads the result instead of x, or a bool mask of x or of the result, wherever
// that is enough.
#if !defined(TAPEDECK_ENGINE_OPS_ACTIVATION_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_ACTIVATION_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/activation.h>

#include <limits>
#include <string_view>

namespace tapedeck TAPEDECK_API {

// ---- smooth gates: x times a number between 0 and 1 ----

OP(gelu, {
             .doc = "x cdf(x) of the normal distribution; approximate \"tanh\": x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<GeluAttrs>(),
             .infer = infer_gelu,
             .vjp = [](Vjp& b) { b.dx(0, gelu_grad(b.x(0), b.dy(), b.attributes<GeluAttrs>())); },
             .examples = {"gelu(f32[3,5]) {}", "gelu(f32[3,5]) {approximate=\"tanh\"}", "gelu(f32[0]) {}"},
         })

OP(gelu_grad, {
                  .doc = "gradient of gelu: x, dy -> dy times its derivative",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 1}, {0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .attrs = &attr_schema<GeluAttrs>(),
                  .infer = infer_gelu_grad,
                  .vjp =
                      [](Vjp& b) {
                        const auto& a = b.attributes<GeluAttrs>();
                        if (b.needs(0)) b.dx(0, mul(mul(b.dy(), b.x(1)), gelu_curvature(b.x(0), a)));
                        if (b.needs(1)) b.dx(1, gelu_grad(b.x(0), b.dy(), a));
                      },
                  .examples = {"gelu_grad(f32[3,5], f32[3,5]) {}", "gelu_grad(f32[3,5], f32[3,5]) {approximate=\"tanh\"}"},
              })

OP(silu, {
             .doc = "x sigmoid(x)",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, silu_grad(b.x(0), b.dy())); },
             .examples = {"silu(f32[3,5])", "silu(f32[0])"},
         })

OP(silu_grad, {
                  .doc = "gradient of silu: x, dy -> dy s (1 + x (1 - s)) with s = sigmoid(x)",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 1}, {0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_float_like_first,
                  .vjp =
                      [](Vjp& b) {
                        if (b.needs(0)) b.dx(0, mul(mul(b.dy(), b.x(1)), silu_curvature(b.x(0))));
                        if (b.needs(1)) b.dx(1, silu_grad(b.x(0), b.dy()));
                      },
                  .examples = {"silu_grad(f32[3,5], f32[3,5])"},
              })

OP(mish, {
             .doc = "x tanh(softplus(x))",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, mish_grad(b.x(0), b.dy())); },
             .examples = {"mish(f32[3,5])", "mish(f32[4] in (-9,9))"},
         })

OP(mish_grad, {
                  .doc = "gradient of mish: x, dy -> dy (t + x (1 - t^2) sigmoid(x)) with t = tanh(softplus(x))",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 1}, {0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_float_like_first,
                  .vjp =
                      [](Vjp& b) {
                        if (b.needs(0)) b.dx(0, mul(mul(b.dy(), b.x(1)), mish_curvature(b.x(0))));
                        if (b.needs(1)) b.dx(1, mish_grad(b.x(0), b.dy()));
                      },
                  .examples = {"mish_grad(f32[3,5], f32[3,5])"},
              })

OP(hardswish, {
                  .doc = "x clamp(x + 3, 0, 6) / 6",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 0}},
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .infer = infer_float,
                  .vjp = [](Vjp& b) { b.dx(0, hardswish_grad(b.x(0), b.dy())); },
                  .examples = {"hardswish(f32[3,5])", "hardswish(f32[4] in (3.5,9))", "hardswish(f32[4] in (-9,-3.5))"},
              })

OP(hardswish_grad, {
                       .doc = "gradient of hardswish: x, dy -> 0 up to -3, dy from 3 on, dy (2x + 3) / 6 between",
                       .traits = kElementwise | kCheap | kAnyStrides,
                       .inplace = {{0, 1}, {0, 0}},
                       .min_inputs = 2,
                       .max_inputs = 2,
                       .infer = infer_float_like_first,
                       .vjp =
                           [](Vjp& b) {
                             if (b.needs(0)) b.dx(0, where(less(abs(b.x(0)), 3), mul(mul(b.dy(), b.x(1)), 1.0 / 3), 0));
                             if (b.needs(1)) b.dx(1, hardswish_grad(b.x(0), b.dy()));
                           },
                       .examples = {"hardswish_grad(f32[3,5], f32[3,5])", "hardswish_grad(f32[4] in (3.5,9), f32[4])"},
                   })

// ---- smooth and monotonic ----

OP(softplus, {
                 .doc = "log(1 + exp(beta x)) / beta, and x itself where beta x > threshold",
                 .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
                 .inplace = {{0, 0}},
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .attrs = &attr_schema<SoftplusAttrs>(),
                 .infer = infer_softplus,
                 .vjp = softplus_vjp,
                 .examples = {"softplus(f32[3,5]) {}", "softplus(f32[4,1]) {beta=2.5}",
                              "softplus(f32[4] in (0.6,2)) {threshold=0.5}", "softplus(f32[4] in (-2,0.4)) {threshold=0.5}"},
             })

OP(softplus_grad,
   {
       .doc = "gradient of softplus from its result: y, dy -> dy (1 - exp(-beta y)), and dy where beta y > threshold",
       .traits = kElementwise | kCheap | kAnyStrides,
       .inplace = {{0, 1}, {0, 0}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<SoftplusAttrs>(),
       .infer = infer_softplus_grad,
       .vjp =
           [](Vjp& b) {
             const auto& a = b.attributes<SoftplusAttrs>();
             if (b.needs(0)) {
               const Tensor z = mul(b.x(0), a.beta);
               b.dx(0, where(greater(z, a.threshold), 0, mul(mul(b.dy(), b.x(1)), mul(exp(neg(z)), a.beta))));
             }
             if (b.needs(1)) b.dx(1, softplus_grad(b.x(0), b.dy(), a));
           },
       .examples = {"softplus_grad(f32[3,5] in (0.1,3), f32[3,5]) {}",
                    "softplus_grad(f32[4] in (0.1,3), f32[4]) {beta=2.0, threshold=inf}"},
   })

OP(logsigmoid, {
                   .doc = "log sigmoid(x), without loss in either tail",
                   .traits = kElementwise | kCheap | kAnyStrides | kFullPrecision,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_float,
                   .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), neg(expm1(b.y())))); },
                   .examples = {"logsigmoid(f32[3,5])", "logsigmoid(f32[4] in (-9,9))"},
               })

OP(softsign, {
                 .doc = "x / (1 + |x|)",
                 .traits = kElementwise | kCheap | kAnyStrides,
                 .inplace = {{0, 0}},
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .infer = infer_float,
                 .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), square(add(abs(b.x(0)), 1)))); },
                 .examples = {"softsign(f32[3,5] in (0.1,4))", "softsign(f32[4] in (-4,-0.1))"},
             })

OP(tanhshrink, {
                   .doc = "x - tanh(x)",
                   .traits = kElementwise | kCheap | kAnyStrides,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_float,
                   .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), square(tanh(b.x(0))))); },
                   .examples = {"tanhshrink(f32[3,5])"},
               })

// ---- rectifiers with an exponential left side; the gradient reads the result ----

OP(elu, {
            .doc = "x where x > 0, else alpha (exp(x) - 1); alpha >= 0",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .attrs = &attr_schema<EluAttrs>(),
            .infer = infer_elu,
            .vjp =
                [](Vjp& b) {
                  b.dx(0, elu_grad(b.y(), b.dy(), {b.attributes<EluAttrs>().alpha, 1, 1}));
                },
            .examples = {"elu(f32[3,5]) {}", "elu(f32[4]) {alpha=1.5}", "elu(f32[4] in (0.1,2)) {alpha=0.0}"},
        })

OP(selu, {
             .doc = "1.0507 elu(x) with alpha 1.6733: keeps zero mean and unit variance from layer to layer",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp =
                 [](Vjp& b) {
                   b.dx(0, elu_grad(b.y(), b.dy(), {kSeluAlpha, kSeluScale, 1}));
                 },
             .examples = {"selu(f32[3,5] in (0.1,2))", "selu(f32[4] in (-2,-0.1))"},
         })

OP(celu, {
             .doc = "x where x > 0, else alpha (exp(x / alpha) - 1); alpha > 0",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<EluAttrs>(),
             .infer = infer_celu,
             .vjp =
                 [](Vjp& b) {
                   const double alpha = b.attributes<EluAttrs>().alpha;
                   b.dx(0, elu_grad(b.y(), b.dy(), {alpha, 1, 1 / alpha}));
                 },
             .examples = {"celu(f32[3,5]) {}", "celu(f32[4]) {alpha=0.5}"},
         })

OP(elu_grad,
   {
       .doc = "gradient of elu, selu and celu from the result: y, dy -> dy scale where y > 0, else dy slope (y + alpha scale)",
       .traits = kElementwise | kCheap | kAnyStrides,
       .inplace = {{0, 1}, {0, 0}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<EluGradAttrs>(),
       .infer = infer_float_like_first,
       .vjp =
           [](Vjp& b) {
             const auto& a = b.attributes<EluGradAttrs>();
             if (b.needs(0)) b.dx(0, where(greater(b.x(0), 0), 0, mul(mul(b.dy(), b.x(1)), a.slope)));
             if (b.needs(1)) b.dx(1, elu_grad(b.x(0), b.dy(), a));
           },
       .examples = {"elu_grad(f32[3,5] in (0.1,2), f32[3,5]) {alpha=1.5, scale=1.25}",
                    "elu_grad(f32[4] in (-0.9,-0.1), f32[4]) {alpha=2.0, slope=0.5}"},
   })

// ---- piecewise linear: the gradient reads a mask ----

OP(leaky_relu, {
                   .doc = "x where x > 0, else slope x",
                   .traits = kElementwise | kCheap | kAnyStrides,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = &attr_schema<LeakyReluAttrs>(),
                   .infer = infer_float,
                   .vjp =
                       [](Vjp& b) {
                         const double slope = b.attributes<LeakyReluAttrs>().slope;
                         const Tensor positive =
                             greater(slope >= 0 ? b.y() : b.x(0), 0);  // if slope >= 0, x and y have the same sign
                         b.dx(0, where(positive, b.dy(), mul(b.dy(), slope)));
                       },
                   .examples = {"leaky_relu(f32[3,5]) {}", "leaky_relu(f32[4]) {slope=0.2}",
                                "leaky_relu(f32[2,1,3] in (-2,-0.1)) {slope=-0.5}"},
               })

OP(prelu, {
              .doc = "x where x > 0, else weight x; the weight broadcasts to x",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}},
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_prelu,
              .vjp =
                  [](Vjp& b) {
                    const Tensor positive = greater(b.x(0), 0);
                    if (b.needs(0)) b.dx(0, where(positive, b.dy(), mul(b.dy(), b.x(1))));
                    if (b.needs(1)) b.dx(1, where(positive, 0, mul(b.dy(), b.x(0))));
                  },
              .examples = {"prelu(f32[3,5], f32[])", "prelu(f32[2,3,4], f32[3,1])", "prelu(f32[0], f32[])"},
          })

OP(hardsigmoid, {
                    .doc = "clamp(x + 3, 0, 6) / 6",
                    .traits = kElementwise | kCheap | kAnyStrides,
                    .inplace = {{0, 0}},
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .infer = infer_float,
                    .vjp = [](Vjp& b) { b.dx(0, where(less(abs(b.x(0)), 3), mul(b.dy(), 1.0 / 6), 0)); },
                    .examples = {"hardsigmoid(f32[3,5])", "hardsigmoid(f32[4] in (3.5,9))", "hardsigmoid(f32[4] in (-9,-3.5))"},
                })

OP(hardshrink, {
                   .doc = "x where |x| > bound, else 0; bound >= 0",
                   .traits = kElementwise | kCheap | kAnyStrides,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = &attr_schema<ShrinkAttrs>(),
                   .infer = infer_shrink,
                   .vjp = [](Vjp& b) { b.dx(0, where(not_equal(b.y(), 0), b.dy(), 0)); },
                   .examples = {"hardshrink(f32[3,5] in (0.6,2)) {}", "hardshrink(f32[4] in (-0.9,0.9)) {bound=1.0}",
                                "hardshrink(f32[4]) {bound=0.0}"},
               })

OP(softshrink, {
                   .doc = "x - bound where x > bound, x + bound where x < -bound, else 0; bound >= 0",
                   .traits = kElementwise | kCheap | kAnyStrides,
                   .inplace = {{0, 0}},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = &attr_schema<ShrinkAttrs>(),
                   .infer = infer_shrink,
                   .vjp = [](Vjp& b) { b.dx(0, where(not_equal(b.y(), 0), b.dy(), 0)); },
                   .examples = {"softshrink(f32[3,5]) {}", "softshrink(f32[4] in (-0.9,0.9)) {bound=1.0}"},
               })

OP(threshold,
   {
       .doc = "x where x > threshold, else value",
       .traits = kElementwise | kCheap | kAnyStrides,
       .inplace = {{0, 0}},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<ThresholdAttrs>(),
       .infer = infer_float,
       .vjp = [](Vjp& b) { b.dx(0, where(less_equal(b.x(0), b.attributes<ThresholdAttrs>().threshold), 0, b.dy())); },
       .examples = {"threshold(f32[3,5] in (0.6,2)) {threshold=0.5, value=-3.0}",
                    "threshold(f32[4] in (-2,0.4)) {threshold=0.5, value=7.0}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

#define TAPEDECK_UNARY(f) \
  inline Tensor f(const Arg& x) { return apply(ops::f, {&x.tensor()}, nullptr, x.site()); }
#define TAPEDECK_GRAD(f) \
  inline Tensor f(const Arg& x, const Tensor& dy) { return apply(ops::f, {&x.tensor(), &dy}, nullptr, x.site()); }
#define TAPEDECK_GRAD_WITH(f, Attrs)                                    \
  inline Tensor f(const Arg& x, const Tensor& dy, const Attrs& attrs) { \
    return apply(ops::f, {&x.tensor(), &dy}, &attrs, x.site());         \
  }

// Elementwise functions for floating types.
TAPEDECK_UNARY(silu)
TAPEDECK_UNARY(mish)
TAPEDECK_UNARY(hardsigmoid)
TAPEDECK_UNARY(hardswish)
TAPEDECK_UNARY(logsigmoid)
TAPEDECK_UNARY(softsign)
TAPEDECK_UNARY(tanhshrink)
TAPEDECK_UNARY(selu)
TAPEDECK_GRAD(silu_grad)
TAPEDECK_GRAD(mish_grad)
TAPEDECK_GRAD(hardswish_grad)
TAPEDECK_GRAD_WITH(gelu_grad, GeluAttrs)
TAPEDECK_GRAD_WITH(softplus_grad, SoftplusAttrs)
TAPEDECK_GRAD_WITH(elu_grad, EluGradAttrs)
#undef TAPEDECK_UNARY
#undef TAPEDECK_GRAD
#undef TAPEDECK_GRAD_WITH

Tensor gelu(const Arg& x, std::string_view approximate = "none");
Tensor softplus(const Arg& x, double beta = 1, double threshold = 20);
Tensor elu(const Arg& x, double alpha = 1);
Tensor celu(const Arg& x, double alpha = 1);
Tensor leaky_relu(const Arg& x, double slope = 0.01);
Tensor hardshrink(const Arg& x, double bound = 0.5);
Tensor softshrink(const Arg& x, double bound = 0.5);
Tensor threshold(const Arg& x, double threshold, double value);
// clamp(x, min, max) with the default bounds -1 and 1; and clamp(x, 0, 6).
Tensor hardtanh(const Arg& x, double min = -1, double max = 1);
Tensor relu6(const Arg& x);
// The weight is one number for all of x. If it is a vector and x has more than one dimension, it has one number for each
// channel (dimension 1).
Tensor prelu(const Arg& x, const Tensor& weight);
// x is cut into halves a and b along an axis of even size; the result is a sigmoid(b).
Tensor glu(const Arg& x, std::int64_t axis = -1);
// silu(gate) x: the product inside a gated feed-forward layer.
Tensor swiglu(const Arg& gate, const Tensor& x);
#endif

}  // namespace TAPEDECK_API
#endif
