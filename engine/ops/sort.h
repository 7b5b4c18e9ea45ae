// Sorting along an axis. NaN counts as the largest number. Equal elements keep their order. Gradients read only the saved
// indices.
#if !defined(TAPEDECK_ENGINE_OPS_SORT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_SORT_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/sort.h>

#include <utility>

namespace tapedeck TAPEDECK_API {

OP(sort, {
             .doc = "elements in order along an axis, and the i64 index of where each came from; equal ones stay in order",
             .min_inputs = 1,
             .max_inputs = 1,
             .min_outputs = 2,
             .max_outputs = 2,
             .attrs = &attr_schema<SortAttrs>(),
             .infer =
                 [](Infer& f) {
                   infer_sorted(f);
                   f.outputs.assign({f.inputs[0], Type{DType::i64, f.inputs[0].shape}});
                 },
             .vjp = vjp_by_index<SortAttrs>,
             .cost = cost_sort<SortAttrs>,
             .workspace = sort_workspace,
             .examples = {"sort(f32[3,5]) {axis=1}", "sort(f32[40,3]) {axis=0, descending=true}",
                          "sort(f32[2,300] in (-200,200)) {axis=1}", "sort(i32[2,300] in (-50,50)) {axis=1, descending=true}",
                          "sort(u8[7]) {axis=0}", "sort(f32[3,0]) {axis=1}"},
         })

OP(argsort, {
                .doc = "the i64 index of where each element of the sorted axis came from; equal ones stay in order",
                .traits = kNoGradient,
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<SortAttrs>(),
                .infer =
                    [](Infer& f) {
                      infer_sorted(f);
                      f.outputs.assign(1, Type{DType::i64, f.inputs[0].shape});
                    },
                .no_gradient = "integer result",
                .cost = cost_sort<SortAttrs>,
                .workspace = sort_workspace,
                .examples = {"argsort(f32[3,5]) {axis=1}", "argsort(i64[300,2] in (-9,9)) {axis=0, descending=true}",
                             "argsort(bool[9]) {axis=0}"},
            })

OP(topk, {
             .doc = "the k largest (or smallest) elements along an axis and their i64 indices; of equal ones the first; else "
                    "in order of place",
             .min_inputs = 1,
             .max_inputs = 1,
             .min_outputs = 2,
             .max_outputs = 2,
             .attrs = &attr_schema<TopkAttrs>(),
             .infer = infer_topk,
             .vjp = vjp_by_index<TopkAttrs>,
             .cost = cost_sort<TopkAttrs>,
             .workspace = topk_workspace,
             .examples = {"topk(f32[3,5]) {k=2, axis=1}", "topk(f32[40,3]) {k=3, axis=0, largest=false}",
                          "topk(f32[2,300] in (-200,200)) {k=20, axis=1, sorted=false}",
                          "topk(i32[2,9] in (0,3)) {k=9, axis=1}", "topk(f32[2,3]) {k=0, axis=1}"},
         })

OP(searchsorted, {
                     .doc = "sorted [...,n], values [...,m] -> i64: how many elements of a row are less (right: not greater); "
                            "one row serves any values",
                     .traits = kNoGradient,
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .attrs = &attr_schema<SearchAttrs>(),
                     .infer = infer_searchsorted,
                     .no_gradient = "integer result",
                     .cost =
                         [](std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
                           Cost cost = cost_like_copy(inputs, outputs, attrs);
                           cost.flops = 2000.0 * static_cast<double>(outputs[0].numel());
                           return cost;
                         },
                     .examples = {"searchsorted(f32[5] in (1,1), f32[3,4])",
                                  "searchsorted(i64[2,6] in (1,2), i64[2,4] in (0,3)) {right=true}",
                                  "searchsorted(f32[0], f32[3])", "searchsorted(i32[1] in (2,3), i32[])"},
                 })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// sort and topk return the values and their i64 indices.
std::pair<Tensor, Tensor> sort(const Arg& x, std::int64_t axis = -1, bool descending = false);
std::pair<Tensor, Tensor> topk(const Arg& x, std::int64_t k, std::int64_t axis = -1, bool largest = true, bool sorted = true);
Tensor argsort(const Arg& x, std::int64_t axis = -1, bool descending = false);
// The k-th smallest element along the axis (k counts from 1) and its index. The axis is dropped unless keepdims.
std::pair<Tensor, Tensor> kthvalue(const Arg& x, std::int64_t k, std::int64_t axis = -1, bool keepdims = false);
// The positions at which the values would be inserted into sorted rows: before equal elements, or after them if `right`.
Tensor searchsorted(const Arg& sorted, const Arg& values, bool right = false);
#endif

}  // namespace TAPEDECK_API
#endif
