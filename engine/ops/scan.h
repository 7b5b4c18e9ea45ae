// Scans: running sums, products and extremes along an axis. The gradient of a running sum is a running sum; the gradient of a
// product or of a linear recurrence is a linear recurrence.
#if !defined(TAPEDECK_ENGINE_OPS_SCAN_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_SCAN_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/scan.h>

#include <utility>

namespace tapedeck TAPEDECK_API {

OP(cumsum,
   {
       .doc = "running sum along an axis: y[i] = x[0] + ... + x[i]; exclusive leaves x[i] out, reverse starts at the end",
       .traits = kCheap | kFullPrecision,
       .inplace = {{0, 0}},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<ScanAttrs>(),
       .infer = infer_scan,
       .vjp =
           [](Vjp& b) {
             const auto& a = b.attributes<ScanAttrs>();
             b.dx(0, cumsum(b.dy(), a.axis, {.exclusive = a.exclusive, .reverse = !a.reverse}));
           },
       .examples = {"cumsum(f32[7]) {axis=0}", "cumsum(f32[3,5,2]) {axis=1, exclusive=true}",
                    "cumsum(f32[3,70]) {axis=0, reverse=true}", "cumsum(i64[4,5]) {axis=1, exclusive=true, reverse=true}",
                    "cumsum(f32[0]) {axis=0}"},
   })

OP(cumprod,
   {
       .doc = "running product along an axis: y[i] = x[0] ... x[i]; exclusive leaves x[i] out, reverse starts at the end",
       .traits = kCheap | kFullPrecision,
       .inplace = {{0, 0}},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<ScanAttrs>(),
       .infer = infer_scan,
       .vjp = vjp_cumprod,
       .examples = {"cumprod(f32[7]) {axis=0}", "cumprod(f32[3,5,2]) {axis=1, exclusive=true}",
                    "cumprod(f32[3,70]) {axis=0, reverse=true}", "cumprod(f32[4,5]) {axis=1, exclusive=true, reverse=true}",
                    "cumprod(i32[4,5] in (1,3)) {axis=1}", "cumprod(f32[0]) {axis=0}"},
   })

OP(linear_scan,
   {
       .doc = "linear recurrence along an axis of a, b: y[0] = b[0], y[i] = b[i] + a[i] y[i-1]; reverse starts at the end",
       .traits = kCheap | kFullPrecision,
       .inplace = {{0, 0}, {0, 1}},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<LinearScanAttrs>(),
       .infer = infer_linear_scan,
       .vjp =
           [](Vjp& b) {
             const auto& a = b.attributes<LinearScanAttrs>();
             const Tensor db = linear_scan(neighbour(b.x(0), a.axis, !a.reverse), b.dy(), a.axis, !a.reverse);
             if (b.needs(0)) b.dx(0, mul(db, neighbour(b.y(), a.axis, a.reverse)));
             b.dx(1, db);
           },
       .examples = {"linear_scan(f32[7], f32[7]) {axis=0}", "linear_scan(f32[3,5,2], f32[3,5,2]) {axis=1, reverse=true}",
                    "linear_scan(f32[4,70], f32[4,70]) {axis=0}", "linear_scan(f32[0], f32[0]) {axis=0}"},
   })

OP(logcumsumexp, {
                     .doc = "running log(sum(exp(x))) along an axis, safe against overflow",
                     .traits = kFullPrecision,
                     .inplace = {{0, 0}},
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .attrs = &attr_schema<LinearScanAttrs>(),
                     .infer =
                         [](Infer& f) {
                           infer_require_float(f, f.inputs[0]);
                           infer_require_axis(f, f.attributes<LinearScanAttrs>().axis);
                           infer_same(f);
                         },
                     .vjp = vjp_logcumsumexp,
                     .cost =
                         [](std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
                           Cost cost = cost_like_copy(inputs, outputs, attrs);
                           cost.flops = 60.0 * static_cast<double>(inputs[0].numel());
                           return cost;
                         },
                     .examples = {"logcumsumexp(f32[7]) {axis=0}", "logcumsumexp(f32[3,5,2]) {axis=1, reverse=true}",
                                  "logcumsumexp(f32[0]) {axis=0}"},
                 })

OP(cummax,
   {
       .doc = "running maximum along an axis and the i64 index of where it was found, the latest of equals; a NaN stays",
       .min_inputs = 1,
       .max_inputs = 1,
       .min_outputs = 2,
       .max_outputs = 2,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer = infer_running_extreme,
       .vjp = vjp_running_extreme,
       .examples = {"cummax(f32[7]) {axis=0}", "cummax(f32[3,5,2]) {axis=1}", "cummax(i32[4,5]) {axis=1}",
                    "cummax(f32[3,0]) {axis=1}"},
   })

OP(cummin,
   {
       .doc = "running minimum along an axis and the i64 index of where it was found, the latest of equals; a NaN stays",
       .min_inputs = 1,
       .max_inputs = 1,
       .min_outputs = 2,
       .max_outputs = 2,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer = infer_running_extreme,
       .vjp = vjp_running_extreme,
       .examples = {"cummin(f32[7]) {axis=0}", "cummin(f32[3,5,2]) {axis=1}", "cummin(i32[4,5]) {axis=1}",
                    "cummin(f32[3,0]) {axis=1}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

struct ScanOptions {
  bool exclusive = false;  // result i leaves out element i, and result 0 is 0 (or 1)
  bool reverse = false;    // starts at the end of the axis
};
// Results have the shape and dtype of x (bools are counted in i64). The axis may be negative.
Tensor cumsum(const Arg& x, std::int64_t axis = -1, ScanOptions options = {});
Tensor cumprod(const Arg& x, std::int64_t axis = -1, ScanOptions options = {});
Tensor logcumsumexp(const Arg& x, std::int64_t axis = -1, bool reverse = false);
// y[i] = b[i] + a[i] y[i-1]. a and b have one type.
Tensor linear_scan(const Arg& a, const Arg& b, std::int64_t axis = -1, bool reverse = false);
// Return the values and their i64 indices.
std::pair<Tensor, Tensor> cummax(const Arg& x, std::int64_t axis = -1);
std::pair<Tensor, Tensor> cummin(const Arg& x, std::int64_t axis = -1);
#endif

}  // namespace TAPEDECK_API
#endif
