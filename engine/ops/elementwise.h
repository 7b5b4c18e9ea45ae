// Elementwise ops: arithmetic, comparisons, logic, and common functions. Operands broadcast as in NumPy.
#if !defined(TAPEDECK_ENGINE_OPS_ELEMENTWISE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_ELEMENTWISE_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

// ---- arithmetic ----

OP(add, {
            .doc = "a + b, elementwise with broadcasting",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}, {0, 1}},
            .min_inputs = 2,
            .max_inputs = 2,
            .infer = infer_broadcast,
            .vjp =
                [](Vjp& b) {
                  b.dx(0, b.dy());
                  b.dx(1, b.dy());
                },
            .examples = {"add(f32[3,5], f32[3,5])", "add(f32[3,5], f32[5])", "add(f32[2,1,4], f32[3,1])", "add(f32[0], f32[])"},
        })

OP(sub, {
            .doc = "a - b, elementwise with broadcasting",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}, {0, 1}},
            .min_inputs = 2,
            .max_inputs = 2,
            .infer = infer_broadcast,
            .vjp =
                [](Vjp& b) {
                  b.dx(0, b.dy());
                  if (b.needs(1)) b.dx(1, neg(b.dy()));
                },
            .examples = {"sub(f32[3,5], f32[3,5])", "sub(f32[3,5], f32[3,1])"},
        })

OP(mul, {
            .doc = "a * b, elementwise with broadcasting",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}, {0, 1}},
            .min_inputs = 2,
            .max_inputs = 2,
            .infer = infer_broadcast,
            .vjp =
                [](Vjp& b) {
                  if (b.needs(0)) b.dx(0, mul(b.dy(), b.x(1)));
                  if (b.needs(1)) b.dx(1, mul(b.dy(), b.x(0)));
                },
            .examples = {"mul(f32[3,5], f32[3,5])", "mul(f32[3,5], f32[])", "mul(f32[4,1], f32[1,4])"},
        })

OP(div, {
            .doc = "a / b, elementwise with broadcasting; integers truncate, division of an integer by zero is an error",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}, {0, 1}},
            .min_inputs = 2,
            .max_inputs = 2,
            .infer = infer_broadcast,
            .vjp =
                [](Vjp& b) {
                  const Tensor d = div(b.dy(), b.x(1));
                  b.dx(0, d);
                  if (b.needs(1)) b.dx(1, neg(mul(d, b.y())));
                },
            .examples = {"div(f32[3,5], f32[3,5] in (0.5,2))", "div(f32[3,5], f32[5] in (0.5,2))"},
        })

OP(pow, {
            .doc = "a to the power b, elementwise with broadcasting",
            .traits = kElementwise | kAnyStrides,
            .inplace = {{0, 0}, {0, 1}},
            .min_inputs = 2,
            .max_inputs = 2,
            .infer = infer_broadcast,
            .vjp =
                [](Vjp& b) {
                  if (b.needs(0)) {
                    // b a^(b - 1), with another exponent where b is 0: 0 times the infinity 0^-1 would be NaN.
                    const Tensor less_one = where(equal(b.x(1), 0), 0, sub(b.x(1), 1));
                    b.dx(0, mul(b.dy(), mul(b.x(1), pow(b.x(0), less_one))));
                  }
                  if (b.needs(1)) {
                    // y log a. 0^b stays 0 when b > 0 changes, so log 1 replaces log 0 there.
                    const Tensor flat = logical_and(equal(b.x(0), 0), greater_equal(b.x(1), 0));
                    b.dx(1, mul(b.dy(), mul(b.y(), log(where(flat, 1, b.x(0))))));
                  }
                },
            .examples = {"pow(f32[3,5] in (0.5,2), f32[3,5])", "pow(f32[3,5] in (0.5,2), f32[])"},
        })

OP(maximum, {
                .doc = "the larger of a and b, NaN if either is; a tie sends the gradient to a",
                .traits = kElementwise | kCheap | kAnyStrides,
                .inplace = {{0, 0}, {0, 1}},
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_broadcast,
                .vjp =
                    [](Vjp& b) {
                      const Tensor first = greater_equal(b.x(0), b.x(1));
                      b.dx(0, mul(b.dy(), cast(first, b.dy().dtype())));
                      if (b.needs(1)) b.dx(1, mul(b.dy(), cast(logical_not(first), b.dy().dtype())));
                    },
                .examples = {"maximum(f32[3,5], f32[3,5])", "maximum(f32[3,5], f32[])"},
            })

OP(minimum, {
                .doc = "the smaller of a and b, NaN if either is; a tie sends the gradient to a",
                .traits = kElementwise | kCheap | kAnyStrides,
                .inplace = {{0, 0}, {0, 1}},
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_broadcast,
                .vjp =
                    [](Vjp& b) {
                      const Tensor first = less_equal(b.x(0), b.x(1));
                      b.dx(0, mul(b.dy(), cast(first, b.dy().dtype())));
                      if (b.needs(1)) b.dx(1, mul(b.dy(), cast(logical_not(first), b.dy().dtype())));
                    },
                .examples = {"minimum(f32[3,5], f32[3,5])"},
            })

// ---- functions of one operand ----

OP(neg, {
            .doc = "-x",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_same,
            .vjp = [](Vjp& b) { b.dx(0, neg(b.dy())); },
            .examples = {"neg(f32[3,5])"},
        })

OP(abs, {
            .doc = "|x|; the gradient at 0 is 0",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_same,
            .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), sign(b.x(0)))); },
            .examples = {"abs(f32[3,5])"},
        })

OP(sign, {
             .doc = "-1, 0 or 1",
             .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_same,
             .no_gradient = "zero almost everywhere",
             .examples = {"sign(f32[3,5])"},
         })

OP(square, {
               .doc = "x * x",
               .traits = kElementwise | kCheap | kAnyStrides,
               .inplace = {{0, 0}},
               .min_inputs = 1,
               .max_inputs = 1,
               .infer = infer_same,
               .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), mul(b.x(0), 2))); },
               .examples = {"square(f32[3,5])"},
           })

OP(relu, {
             .doc = "max(x, 0)",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_same,
             .vjp = [](Vjp& b) { b.dx(0, relu_grad(b.y(), b.dy())); },
             .examples = {"relu(f32[3,5])", "relu(f32[0])"},
         })

OP(relu_grad, {
                  .doc = "dy where y > 0, else 0",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 1}, {0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_like_first,
                  .vjp =
                      [](Vjp& b) {
                        if (b.needs(1)) b.dx(1, relu_grad(b.x(0), b.dy()));
                      },
                  .examples = {"relu_grad(f32[3,5], f32[3,5])"},
              })

OP(exp, {
            .doc = "e to the power x",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), b.y())); },
            .examples = {"exp(f32[3,5])"},
        })

OP(log, {
            .doc = "natural logarithm",
            .traits = kElementwise | kCheap | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), b.x(0))); },
            .examples = {"log(f32[3,5] in (0.1,4))"},
        })

OP(sqrt, {
             .doc = "square root",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, div(b.dy(), mul(b.y(), 2))); },
             .examples = {"sqrt(f32[3,5] in (0.1,4))"},
         })

OP(rsqrt, {
              .doc = "1 / sqrt(x)",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}},
              .min_inputs = 1,
              .max_inputs = 1,
              .infer = infer_float,
              .vjp = [](Vjp& b) { b.dx(0, mul(mul(b.dy(), -0.5), mul(b.y(), mul(b.y(), b.y())))); },
              .examples = {"rsqrt(f32[3,5] in (0.5,4))"},
          })

OP(sin, {
            .doc = "sine",
            .traits = kElementwise | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, mul(b.dy(), cos(b.x(0)))); },
            .examples = {"sin(f32[3,5])"},
        })

OP(cos, {
            .doc = "cosine",
            .traits = kElementwise | kAnyStrides,
            .inplace = {{0, 0}},
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = infer_float,
            .vjp = [](Vjp& b) { b.dx(0, neg(mul(b.dy(), sin(b.x(0))))); },
            .examples = {"cos(f32[3,5])"},
        })

OP(tanh, {
             .doc = "hyperbolic tangent",
             .traits = kElementwise | kCheap | kAnyStrides,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_float,
             .vjp = [](Vjp& b) { b.dx(0, tanh_grad(b.y(), b.dy())); },
             .examples = {"tanh(f32[3,5])"},
         })

OP(tanh_grad, {
                  .doc = "dy (1 - y^2)",
                  .traits = kElementwise | kCheap | kAnyStrides,
                  .inplace = {{0, 1}, {0, 0}},
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_like_first,
                  .vjp =
                      [](Vjp& b) {
                        if (b.needs(0)) b.dx(0, mul(mul(b.dy(), b.x(1)), mul(b.x(0), -2)));
                        if (b.needs(1)) b.dx(1, tanh_grad(b.x(0), b.dy()));
                      },
                  .examples = {"tanh_grad(f32[3,5], f32[3,5])"},
              })

OP(sigmoid, {
                .doc = "1 / (1 + exp(-x))",
                .traits = kElementwise | kCheap | kAnyStrides,
                .inplace = {{0, 0}},
                .min_inputs = 1,
                .max_inputs = 1,
                .infer = infer_float,
                .vjp = [](Vjp& b) { b.dx(0, sigmoid_grad(b.y(), b.dy())); },
                .examples = {"sigmoid(f32[3,5])"},
            })

OP(sigmoid_grad, {
                     .doc = "dy y (1 - y)",
                     .traits = kElementwise | kCheap | kAnyStrides,
                     .inplace = {{0, 1}, {0, 0}},
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .infer = infer_like_first,
                     .vjp =
                         [](Vjp& b) {
                           if (b.needs(0)) b.dx(0, mul(mul(b.dy(), b.x(1)), sub(1, mul(b.x(0), 2))));
                           if (b.needs(1)) b.dx(1, sigmoid_grad(b.x(0), b.dy()));
                         },
                     .examples = {"sigmoid_grad(f32[3,5], f32[3,5])"},
                 })

// ---- comparisons and logic: bool results, no gradient ----

OP(equal, {
              .doc = "a == b",
              .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_compare,
              .no_gradient = "the result is true or false",
              .examples = {"equal(f32[3,5], f32[3,5])", "equal(i32[3], i32[])"},
          })
OP(not_equal, {
                  .doc = "a != b",
                  .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_compare,
                  .no_gradient = "the result is true or false",
                  .examples = {"not_equal(f32[3,5], f32[3,5])"},
              })
OP(less, {
             .doc = "a < b",
             .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
             .min_inputs = 2,
             .max_inputs = 2,
             .infer = infer_compare,
             .no_gradient = "the result is true or false",
             .examples = {"less(f32[3,5], f32[5])"},
         })
OP(less_equal, {
                   .doc = "a <= b",
                   .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_compare,
                   .no_gradient = "the result is true or false",
                   .examples = {"less_equal(f32[3,5], f32[3,5])"},
               })
OP(greater, {
                .doc = "a > b",
                .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_compare,
                .no_gradient = "the result is true or false",
                .examples = {"greater(f32[3,5], f32[3,5])"},
            })
OP(greater_equal, {
                      .doc = "a >= b",
                      .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .infer = infer_compare,
                      .no_gradient = "the result is true or false",
                      .examples = {"greater_equal(f32[3,5], f32[3,5])"},
                  })
OP(logical_and, {
                    .doc = "a and b, of bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}, {0, 1}},
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_logical,
                    .no_gradient = "works on bools",
                    .examples = {"logical_and(bool[3,5], bool[3,5])"},
                })
OP(logical_or, {
                   .doc = "a or b, of bools",
                   .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                   .inplace = {{0, 0}, {0, 1}},
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_logical,
                   .no_gradient = "works on bools",
                   .examples = {"logical_or(bool[3,5], bool[5])"},
               })
OP(logical_not, {
                    .doc = "not a, of bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}},
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .infer = infer_logical,
                    .no_gradient = "works on bools",
                    .examples = {"logical_not(bool[3,5])"},
                })

OP(where, {
              .doc = "a where the condition holds, else b",
              .traits = kElementwise | kCheap | kAnyStrides | kNativeHalf,
              .inplace = {{0, 1}, {0, 2}},
              .min_inputs = 3,
              .max_inputs = 3,
              .infer = infer_where,
              .vjp =
                  [](Vjp& b) {
                    const Tensor zero = full({}, 0, b.dy().dtype());
                    if (b.needs(1)) b.dx(1, where(b.x(0), b.dy(), zero));
                    if (b.needs(2)) b.dx(2, where(b.x(0), zero, b.dy()));
                  },
              .examples = {"where(bool[3,5], f32[3,5], f32[3,5])", "where(bool[3,1], f32[3,5], f32[])"},
          })

OP(cast, {
             .doc = "converts to another dtype; to bool: x != 0; float to integer truncates",
             .traits = kElementwise | kCheap | kAnyStrides | kNativeHalf | kConversion,
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<CastAttrs>(),
             .infer = infer_cast,
             .vjp = [](Vjp& b) { b.dx(0, cast(b.dy(), b.x(0).dtype())); },
             .examples = {"cast(i32[3,5]) {dtype=f32}", "cast(f32[3]) {dtype=i64}"},
         })

OP(copy, {
             .doc = "the same values in bytes of their own",
             .traits = kElementwise | kCheap | kAnyStrides | kNativeHalf | kCopy,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .infer = infer_same,
             .vjp = [](Vjp& b) { b.dx(0, b.dy()); },
             .examples = {"copy(f32[3,5])", "copy(i64[4])"},
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

// add(), cast() and copy() are defined in core_calls.h.
TAPEDECK_BINARY(sub)
TAPEDECK_BINARY(mul)
TAPEDECK_BINARY(div)
TAPEDECK_BINARY(pow)
TAPEDECK_BINARY(maximum)
TAPEDECK_BINARY(minimum)
TAPEDECK_BINARY(equal)
TAPEDECK_BINARY(not_equal)
TAPEDECK_BINARY(less)
TAPEDECK_BINARY(less_equal)
TAPEDECK_BINARY(greater)
TAPEDECK_BINARY(greater_equal)
TAPEDECK_BINARY(logical_and)
TAPEDECK_BINARY(logical_or)
TAPEDECK_BINARY(relu_grad)
TAPEDECK_BINARY(tanh_grad)
TAPEDECK_BINARY(sigmoid_grad)
TAPEDECK_UNARY(neg)
TAPEDECK_UNARY(abs)
TAPEDECK_UNARY(sign)
TAPEDECK_UNARY(square)
TAPEDECK_UNARY(relu)
TAPEDECK_UNARY(exp)
TAPEDECK_UNARY(log)
TAPEDECK_UNARY(sqrt)
TAPEDECK_UNARY(rsqrt)
TAPEDECK_UNARY(sin)
TAPEDECK_UNARY(cos)
TAPEDECK_UNARY(tanh)
TAPEDECK_UNARY(sigmoid)
TAPEDECK_UNARY(logical_not)
#undef TAPEDECK_BINARY
#undef TAPEDECK_UNARY

inline Tensor where(const Arg& condition, const Arg& a, const Arg& b) {
  auto [x, y] = promoted("where", a, b);
  return apply(ops::where, {&condition.tensor(), &x, &y}, nullptr, condition.site());
}

inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
inline Tensor operator-(const Arg& a, const Arg& b) { return sub(a, b); }
inline Tensor operator*(const Arg& a, const Arg& b) { return mul(a, b); }
inline Tensor operator/(const Arg& a, const Arg& b) { return div(a, b); }
inline Tensor operator-(const Arg& x) { return neg(x); }
// Comparisons give a bool for each element, as in NumPy: `if (a == b)` does not compile; bit_equal() compares whole tensors.
inline Tensor operator==(const Arg& a, const Arg& b) { return equal(a, b); }
inline Tensor operator!=(const Arg& a, const Arg& b) { return not_equal(a, b); }
inline Tensor operator<(const Arg& a, const Arg& b) { return less(a, b); }
inline Tensor operator<=(const Arg& a, const Arg& b) { return less_equal(a, b); }
inline Tensor operator>(const Arg& a, const Arg& b) { return greater(a, b); }
inline Tensor operator>=(const Arg& a, const Arg& b) { return greater_equal(a, b); }
#endif

}  // namespace TAPEDECK_API
#endif
