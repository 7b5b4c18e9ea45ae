// Constants, and placeholders for computations that a graph cannot hold.
#if !defined(TAPEDECK_ENGINE_OPS_SPECIAL_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_SPECIAL_H

#include <tapedeck/engine/ops/op_block.h>

#include <type_traits>

namespace tapedeck TAPEDECK_API {

OP(full, {
             .doc = "every element equals value",
             .traits = kCheap | kNoGradient,
             .min_inputs = 0,
             .max_inputs = 0,
             .attrs = &attr_schema<FullAttrs>(),
             .infer =
                 [](Infer& f) {
                   const auto& a = f.attributes<FullAttrs>();
                   if (checked_bytes(a.dtype, {a.shape.items, static_cast<std::size_t>(a.shape.size)}) < 0) f.fail("bad shape");
                   Type out{a.dtype, {}};
                   if (!fits_dtype(a.value, a.dtype))
                     f.fail(fmt::format("value {} does not fit {}", a.value, dtype_name(a.dtype)));
                   for (std::int64_t s : a.shape) out.shape.sizes[out.shape.rank++] = s;
                   f.outputs.assign(1, out);
                 },
             .no_gradient = "depends on no operand",
             .uniform = [](const void* attrs) { return static_cast<const FullAttrs*>(attrs)->value; },
             .examples = {"full() {shape=[3,5], dtype=f32, value=2.5}"},
         })

OP_WITHOUT_KERNEL(constant, {
                                .doc = "a tensor known when the graph was made",
                                .traits = kDeclaredTypes | kZeroCost | kNoGradient,
                                .min_inputs = 0,
                                .max_inputs = 0,
                                .attrs = &attr_schema<ConstantAttrs>(),
                                .no_gradient = "depends on no operand",
                                .examples = {},
                            })

OP(opaque, {
               .doc = "stands for any computation that takes `us` microseconds; replay fills its results from a hash of "
                      "operands and position",
               .traits = kDeclaredTypes | kPlanOnly,
               .min_inputs = 0,
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .attrs = &attr_schema<OpaqueAttrs>(),
               .infer =
                   [](Infer& f) {
                     if (!(f.attributes<OpaqueAttrs>().us >= 0)) f.fail("us must be a number of at least 0");
                   },
               .vjp = nullptr,
               .no_gradient = "stands for a computation that is not known",
               .cost =
                   [](std::span<const Type>, std::span<const Type>, const void* attrs) {
                     Cost cost;
                     cost.us = static_cast<const OpaqueAttrs*>(attrs)->us;
                     return cost;
                   },
               .examples = {},
           })

OP_WITHOUT_KERNEL(
    custom_gradient,
    {
        .doc = "the last operands, with a gradient of the author's own for the first; on tapes only, never in a graph",
        .traits = kDeclaredTypes | kPlanOnly,
        .min_inputs = 1,
        .max_inputs = -1,
        .min_outputs = 1,
        .max_outputs = -1,
        .no_gradient = "the author's function is called instead",
        .examples = {},
    })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});
// An integer of the author. Throws TypeError if no double equals it, because the attribute `value` is a double.
template <class Value>
requires(std::is_integral_v<Value>&& std::is_signed_v<Value>) Tensor
    full(const Shape& shape, Value value, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return full(shape, exact_double("full", value, site), dtype, site);
}
inline Tensor zeros(const Shape& shape, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return full(shape, 0, dtype, site);
}
inline Tensor ones(const Shape& shape, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return full(shape, 1, dtype, site);
}
#endif

}  // namespace TAPEDECK_API
#endif
