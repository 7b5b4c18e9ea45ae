// Tensors made from a rule: ranges, identity matrices, and constants of another tensor's type.
#if !defined(TAPEDECK_ENGINE_OPS_CREATE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_CREATE_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/create.h>

#include <type_traits>

namespace tapedeck TAPEDECK_API {

OP(arange, {
               .doc = "start, start + step, ... before stop; of integers, whole numbers below 2^53",
               .traits = kCheap | kNoGradient,
               .min_inputs = 0,
               .max_inputs = 0,
               .attrs = &attr_schema<ArangeAttrs>(),
               .infer = infer_arange,
               .no_gradient = "it has no operands",
               .examples = {"arange() {start=1.0, stop=2.0, step=0.25, dtype=f32}",
                            "arange() {start=5.0, stop=-4.0, step=-3.0, dtype=i64}", "arange() {stop=0.0, dtype=i32}",
                            "arange() {stop=7.0, dtype=f64}", "arange() {stop=255.5, step=51.0, dtype=f32}"},
           })

OP(linspace, {
                 .doc = "`count` numbers at equal distances from start to stop, both included",
                 .traits = kCheap | kNoGradient,
                 .min_inputs = 0,
                 .max_inputs = 0,
                 .attrs = &attr_schema<LinspaceAttrs>(),
                 .infer = infer_linspace,
                 .no_gradient = "it has no operands",
                 .examples = {"linspace() {start=-1.0, stop=1.0, count=7, dtype=f32}",
                              "linspace() {start=2.0, stop=0.5, count=4, dtype=f64}",
                              "linspace() {start=3.0, stop=9.0, count=1}", "linspace() {start=0.0, stop=1.0, count=0}"},
             })

OP(eye, {
            .doc = "a matrix with ones on its main diagonal and zeros elsewhere",
            .traits = kCheap | kNoGradient,
            .min_inputs = 0,
            .max_inputs = 0,
            .attrs = &attr_schema<EyeAttrs>(),
            .infer = infer_eye,
            .no_gradient = "it has no operands",
            .examples = {"eye() {rows=3, columns=3}", "eye() {rows=2, columns=5, dtype=i32}",
                         "eye() {rows=4, columns=2, dtype=bool}", "eye() {rows=0, columns=3}"},
        })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// The dtype is i64 if all arguments are integers, else f32, unless `dtype` is given.
// An integer that no double equals is a TypeError: the attributes are doubles.
Tensor arange_of(double start, double stop, double step, DType dtype, Site site);
template <class Number>
requires std::is_arithmetic_v<Number>
double bound_of_range(Number value, Site site) {
  if constexpr (std::is_integral_v<Number> && std::is_signed_v<Number>) return exact_double("arange", value, site);
  return static_cast<double>(value);
}
template <class Stop>
requires std::is_arithmetic_v<Stop> Tensor arange(Stop stop, DType dtype = std::is_integral_v<Stop> ? DType::i64 : DType::f32,
                                                  Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return arange_of(0, bound_of_range(stop, site), 1, dtype, site);
}
template <class Start, class Stop, class Step = int>
requires(std::is_arithmetic_v<Start>&& std::is_arithmetic_v<Stop>&& std::is_arithmetic_v<Step>) Tensor
    arange(Start start, Stop stop, Step step = 1,
           DType dtype = std::is_integral_v<Start> && std::is_integral_v<Stop> && std::is_integral_v<Step> ? DType::i64
                                                                                                           : DType::f32,
           Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return arange_of(bound_of_range(start, site), bound_of_range(stop, site), bound_of_range(step, site), dtype, site);
}
Tensor linspace(double start, double stop, std::int64_t count, DType dtype = DType::f32,
                Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor eye(std::int64_t rows, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32, Site site = {__builtin_FILE(), __builtin_LINE()});

// Constants of x's type. The elements of x are not read.
Tensor full_like(const Arg& x, double value);
template <class Value>
requires(std::is_integral_v<Value>&& std::is_signed_v<Value>) Tensor full_like(const Arg& x, Value value) {
  return full_like(x, exact_double("full_like", value, x.site()));
}
Tensor zeros_like(const Arg& x);
Tensor ones_like(const Arg& x);
#endif

}  // namespace TAPEDECK_API
#endif
