// Operations on the bits of integers, and exclusive or of bools.
#if !defined(TAPEDECK_ENGINE_OPS_BITWISE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_BITWISE_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

OP(bitwise_and, {
                    .doc = "a & b, of integers or bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}, {0, 1}},
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_bits,
                    .no_gradient = "it is of integers or bools",
                    .examples = {"bitwise_and(i32[3,5] in (-9,9), i32[5] in (-9,9))", "bitwise_and(bool[3,1], bool[5])",
                                 "bitwise_and(u8[4] in (0,256), u8[])"},
                })

OP(bitwise_or, {
                   .doc = "a | b, of integers or bools",
                   .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                   .inplace = {{0, 0}, {0, 1}},
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_bits,
                   .no_gradient = "it is of integers or bools",
                   .examples = {"bitwise_or(i32[3,5] in (-9,9), i32[5] in (-9,9))", "bitwise_or(bool[3,1], bool[5])",
                                "bitwise_or(u8[4] in (0,256), u8[])"},
               })

OP(bitwise_xor, {
                    .doc = "a ^ b, of integers or bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}, {0, 1}},
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_bits,
                    .no_gradient = "it is of integers or bools",
                    .examples = {"bitwise_xor(i64[3,5] in (-9,9), i64[5] in (-9,9))", "bitwise_xor(bool[3,1], bool[5])",
                                 "bitwise_xor(i32[0], i32[])"},
                })

OP(left_shift, {
                   .doc = "a << b, of integers; counts of the width or more give 0, a negative one is an error",
                   .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                   .inplace = {{0, 0}, {0, 1}},
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_shift,
                   .no_gradient = "it is of integers or bools",
                   .examples = {"left_shift(i32[3,5] in (-9,9), i32[5] in (0,40))", "left_shift(u8[4] in (0,256), u8[])"},
               })

OP(right_shift, {
                    .doc = "a >> b, of integers, rounding down; a negative count is an error",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}, {0, 1}},
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_shift,
                    .no_gradient = "it is of integers or bools",
                    .examples = {"right_shift(i32[3,5] in (-99,99), i32[5] in (0,40))", "right_shift(u8[4] in (0,256), u8[])"},
                })

OP(logical_xor, {
                    .doc = "either a or b, of bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}, {0, 1}},
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_bools,
                    .no_gradient = "it is of integers or bools",
                    .examples = {"logical_xor(bool[3,5], bool[5])"},
                })

OP(bitwise_not, {
                    .doc = "every bit of x turned; not x, of bools",
                    .traits = kElementwise | kCheap | kAnyStrides | kNoGradient,
                    .inplace = {{0, 0}},
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .infer = infer_bits,
                    .no_gradient = "it is of integers or bools",
                    .examples = {"bitwise_not(i32[3,5] in (-9,9))", "bitwise_not(bool[4])"},
                })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

#define TAPEDECK_BINARY(f)                             \
  inline Tensor f(const Arg& a, const Arg& b) {        \
    auto [x, y] = promoted(#f, a, b);                  \
    return apply(ops::f, {&x, &y}, nullptr, a.site()); \
  }

// For i32, i64 and u8, and except for shifts also for bool. Operands broadcast and promote as in add().
TAPEDECK_BINARY(bitwise_and)
TAPEDECK_BINARY(bitwise_or)
TAPEDECK_BINARY(bitwise_xor)
TAPEDECK_BINARY(left_shift)
TAPEDECK_BINARY(right_shift)
TAPEDECK_BINARY(logical_xor)
#undef TAPEDECK_BINARY
inline Tensor bitwise_not(const Arg& x) { return apply(ops::bitwise_not, {&x.tensor()}, nullptr, x.site()); }

// For bools they join masks: (x > 0) & (x < 1). The parentheses are needed, because C++ compares after `&`.
inline Tensor operator&(const Arg& a, const Arg& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Arg& a, const Arg& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Arg& a, const Arg& b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Arg& x) { return bitwise_not(x); }
#endif

}  // namespace TAPEDECK_API
#endif
