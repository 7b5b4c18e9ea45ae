// Indexing: reads and writes elements and slices at positions that stand in tensors.
//
// Indices are i32 or i64. Negative indices count from the end. An index out of range is an ExecutionError when the op runs.
// If several indices name one position, writes happen in row-major order of the indices: the last write stays, and sums add
// up in that order.
#if !defined(TAPEDECK_ENGINE_OPS_INDEX_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_INDEX_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/index.h>

namespace tapedeck TAPEDECK_API {

OP(gather, {
               .doc = "x, index -> y of index's shape: y[i][j][k] = x[i][index[i][j][k]][k] for axis 1",
               .traits = kCheap | kNativeHalf,
               .min_inputs = 2,
               .max_inputs = 2,
               .attrs = &attr_schema<AxisAttrs>(),
               .infer =
                   [](Infer& f) {
                     infer_axis_index(f);
                     f.outputs.assign(1, Type{f.inputs[0].dtype, f.inputs[1].shape});
                   },
               .vjp =
                   [](Vjp& b) {
                     b.dx(0,
                          scatter_add(zeros(b.x(0).shape(), b.dy().dtype()), b.x(1), b.dy(), b.attributes<AxisAttrs>().axis));
                   },
               .examples = {"gather(f32[3,5], i64[3,2] in (-5,5)) {axis=1}", "gather(f32[3,5,2], i32[7,4,2] in (0,3)) {axis=0}",
                            "gather(f32[6], i64[9] in (0,6)) {axis=0}", "gather(f32[2,5,3], i64[2,4,3] in (0,5)) {axis=1}",
                            "gather(u8[3,5], i64[3,0]) {axis=1}"},
           })

OP(scatter,
   {
       .doc = "x, index, src -> x with x[i][index[i][j][k]][k] = src[i][j][k] for axis 1; of equal places the last in "
              "row-major order stays",
       .traits = kCheap | kNativeHalf,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer = infer_scatter,
       .vjp = vjp_scatter,
       .examples = {"scatter(f32[3,5], i64[3,2] in (-5,5), f32[3,2]) {axis=1}",
                    "scatter(f32[3,5,2], i32[7,4,2] in (0,3), f32[7,4,2]) {axis=0}",
                    "scatter(f32[6], i64[9] in (0,6), f32[9]) {axis=0}", "scatter(i32[3,5], i64[3,0], i32[3,0]) {axis=1}"},
   })

OP(scatter_add,
   {
       .doc = "x, index, src -> x with src[i][j][k] added to x[i][index[i][j][k]][k] for axis 1, in row-major order",
       .traits = kCheap,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer =
           [](Infer& f) {
             require_addable(f);
             infer_scatter(f);
           },
       .vjp =
           [](Vjp& b) {
             b.dx(0, b.dy());
             if (b.needs(2)) b.dx(2, gather(b.dy(), b.x(1), b.attributes<AxisAttrs>().axis));
           },
       .examples = {"scatter_add(f32[3,5], i64[3,2] in (-5,5), f32[3,2]) {axis=1}",
                    "scatter_add(f32[3,5,2], i32[7,4,2] in (0,3), f32[7,4,2]) {axis=0}",
                    "scatter_add(f32[6], i64[9] in (0,6), f32[9]) {axis=0}",
                    "scatter_add(i32[3,5], i64[3,0], i32[3,0]) {axis=1}"},
   })

OP(scatter_reduce,
   {
       .doc =
           "x, index, src -> x with x[i][index[i][j][k]][k] multiplied by src[i][j][k] for axis 1, or replaced by the larger "
           "or the smaller of the two",
       .traits = kCheap,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = &attr_schema<ScatterReduceAttrs>(),
       .infer = infer_scatter_reduce,
       .vjp = vjp_scatter_reduce,
       .examples = {"scatter_reduce(f32[3,5], i64[3,2] in (-5,5), f32[3,2]) {axis=1, reduction=\"mul\"}",
                    "scatter_reduce(f32[3,5,2], i32[7,4,2] in (0,3), f32[7,4,2]) {axis=0, reduction=\"max\"}",
                    "scatter_reduce(f32[6], i64[9] in (0,6), f32[9]) {axis=0, reduction=\"min\"}",
                    "scatter_reduce(i32[3,5], i64[3,7] in (0,5), i32[3,7]) {axis=1, reduction=\"mul\"}",
                    "scatter_reduce(i32[3,5], i64[3,0], i32[3,0]) {axis=1, reduction=\"max\"}"},
   })

OP(index_select,
   {
       .doc = "x, index [m] -> the slices of x along an axis that the index names",
       .traits = kCheap | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer = infer_index_select,
       .vjp =
           [](Vjp& b) {
             b.dx(0, index_add(zeros(b.x(0).shape(), b.dy().dtype()), b.attributes<AxisAttrs>().axis, b.x(1), b.dy()));
           },
       .examples = {"index_select(f32[3,5], i64[4] in (-5,5)) {axis=1}", "index_select(f32[4,20,2], i32[7] in (0,4)) {axis=0}",
                    "index_select(f32[6], i64[9] in (0,6)) {axis=0}", "index_select(bool[3,5], i64[0]) {axis=0}"},
   })

OP(index_add,
   {
       .doc = "x, index [m], src -> x with slice j of src along an axis added to slice index[j] of x, in order of j",
       .traits = kCheap,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = &attr_schema<AxisAttrs>(),
       .infer = infer_index_add,
       .vjp =
           [](Vjp& b) {
             b.dx(0, b.dy());
             if (b.needs(2)) b.dx(2, index_select(b.dy(), b.attributes<AxisAttrs>().axis, b.x(1)));
           },
       .workspace =
           [](std::span<const Type> inputs, std::span<const Type>, const void* attrs) {
             const auto axis = static_cast<int>(static_cast<const AxisAttrs*>(attrs)->axis);
             std::int64_t inner = 1;
             for (int d = axis + 1; d < inputs[0].shape.rank; ++d) inner *= inputs[0].shape[d];
             return grouping_bytes(inputs[0].shape[axis], inputs[1].numel(), inner);
           },
       .examples = {"index_add(f32[3,5], i64[4] in (-5,5), f32[3,4]) {axis=1}",
                    "index_add(f32[4,20,2], i32[7] in (0,4), f32[7,20,2]) {axis=0}",
                    "index_add(f32[6], i64[9] in (0,6), f32[9]) {axis=0}", "index_add(i64[3,5], i64[0], i64[0,5]) {axis=0}"},
   })

OP(embedding, {
                  .doc = "table [n,d], ids of any shape -> [ids...,d]: the row of the table that every id names",
                  .traits = kCheap | kNativeHalf,
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_embedding,
                  .vjp = [](Vjp& b) { b.dx(0, embedding_grad(b.x(1), b.dy(), b.x(0).size(0))); },
                  .examples = {"embedding(f32[6,5], i64[2,3] in (0,6))", "embedding(f32[4,20], i32[7] in (-4,4))",
                               "embedding(f32[3,2], i64[] in (0,3))", "embedding(f32[3,2], i64[0,4])"},
              })

OP(embedding_grad,
   {
       .doc = "gradient of embedding for its table: ids, dy [ids...,d] -> [rows,d], where rows of equal ids add up in order",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<RowsAttrs>(),
       .infer = infer_embedding_grad,
       .vjp = [](Vjp& b) { b.dx(1, embedding(b.dy(), b.x(0))); },
       .workspace = [](std::span<const Type> inputs, std::span<const Type> outputs,
                       const void*) { return grouping_bytes(outputs[0].shape[0], inputs[0].numel(), outputs[0].shape[1]); },
       .examples = {"embedding_grad(i64[2,3] in (0,6), f32[2,3,5]) {rows=6}",
                    "embedding_grad(i32[7] in (-4,4), f32[7,20]) {rows=4}", "embedding_grad(i64[0], f32[0,3]) {rows=2}"},
   })

OP(gather_nd,
   {
       .doc = "x, indices [batch...,m...,k] -> [batch...,m...,rest]: the slices of x that the tuples of k indices name",
       .traits = kCheap | kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<GatherNdAttrs>(),
       .infer = infer_gather_nd,
       .vjp =
           [](Vjp& b) {
             const ScatterNdAttrs attrs{"add", b.attributes<GatherNdAttrs>().batch_dims};
             b.dx(0, scatter_nd(zeros(b.x(0).shape(), b.dy().dtype()), b.x(1), b.dy(), attrs));
           },
       .examples = {"gather_nd(f32[3,4,5], i64[6,2] in (0,3))", "gather_nd(f32[3,4], i32[2,3,2] in (-3,3))",
                    "gather_nd(f32[2,3,4], i64[2,5,1] in (0,3)) {batch_dims=1}", "gather_nd(f32[3,4], i64[2,0])",
                    "gather_nd(f32[3,4], i64[0,1])"},
   })

OP(scatter_nd, {
                   .doc = "x, indices [batch...,m...,k], src [batch...,m...,rest] -> x with the slices that the tuples name "
                          "replaced by src, or combined with it (add, mul, max, min)",
                   .traits = kCheap,
                   .inplace = {{0, 0}},
                   .min_inputs = 3,
                   .max_inputs = 3,
                   .attrs = &attr_schema<ScatterNdAttrs>(),
                   .infer = infer_scatter_nd,
                   .vjp = vjp_scatter_nd,
                   .examples = {"scatter_nd(f32[3,4,5], i64[6,2] in (0,3), f32[6,5]) {reduction=\"add\"}",
                                "scatter_nd(f32[3,4,5], i64[6,2] in (0,3), f32[6,5])",
                                "scatter_nd(f32[3,4], i32[2,3,2] in (-3,3), f32[2,3])",
                                "scatter_nd(f32[2,3,4], i64[2,5,1] in (0,3), f32[2,5,4]) {reduction=\"add\", batch_dims=1}",
                                "scatter_nd(f32[3,4,5], i64[6,2] in (0,3), f32[6,5]) {reduction=\"mul\"}",
                                "scatter_nd(f32[2,3,4], i64[2,5,1] in (0,3), f32[2,5,4]) {reduction=\"max\", batch_dims=1}",
                                "scatter_nd(f32[3,4], i32[2,3,2] in (-3,3), f32[2,3]) {reduction=\"min\"}",
                                "scatter_nd(f32[3,4], i64[0,1], f32[0,4])"},
               })

OP(nonzero, {
                .doc = "x -> i64 [count,rank]: the coordinates of the elements that are other than zero, in row-major order; "
                       "there must be `count`",
                .traits = kNoGradient,
                .min_inputs = 1,
                .max_inputs = 1,
                .attrs = &attr_schema<CountAttrs>(),
                .infer =
                    [](Infer& f) {
                      require_count(f, f.inputs[0]);
                      f.outputs.assign(1, Type{DType::i64, {f.attributes<CountAttrs>().count, f.inputs[0].shape.rank}});
                    },
                .no_gradient = "integer result",
                .workspace = [](std::span<const Type> inputs, std::span<const Type>,
                                const void*) { return compaction_bytes(inputs[0]); },
                .examples = {"nonzero(f32[3,5] in (1,2)) {count=15}", "nonzero(bool[7] in (0,1)) {count=0}",
                             "nonzero(i32[2,3,2] in (1,4)) {count=12}", "nonzero(i64[] in (1,2)) {count=1}"},
            })

OP(masked_select,
   {
       .doc =
           "x, mask of x's shape -> [count]: the elements of x where the mask holds, in row-major order; there must be `count`",
       .traits = kNativeHalf,
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = &attr_schema<CountAttrs>(),
       .infer = infer_masked_select,
       .vjp = [](Vjp& b) { b.dx(0, masked_scatter(zeros(b.x(0).shape(), b.dy().dtype()), b.x(1), b.dy())); },
       .workspace = [](std::span<const Type> inputs, std::span<const Type>,
                       const void*) { return compaction_bytes(inputs[1]); },
       .examples = {"masked_select(f32[3,5], bool[3,5] in (1,2)) {count=15}",
                    "masked_select(f32[7], bool[7] in (0,1)) {count=0}", "masked_select(u8[0], bool[0]) {count=0}"},
   })

OP(masked_scatter, {
                       .doc = "x, mask of x's shape, src [n] -> x with the elements where the mask holds replaced by src's in "
                              "order; there must be n",
                       .traits = kNativeHalf,
                       .inplace = {{0, 0}},
                       .min_inputs = 3,
                       .max_inputs = 3,
                       .infer = infer_masked_scatter,
                       .vjp =
                           [](Vjp& b) {
                             if (b.needs(0)) b.dx(0, where(b.x(1), 0, b.dy()));
                             if (b.needs(2)) b.dx(2, masked_select(b.dy(), b.x(1), b.x(2).numel()));
                           },
                       .workspace = [](std::span<const Type> inputs, std::span<const Type>,
                                       const void*) { return compaction_bytes(inputs[1]); },
                       .examples = {"masked_scatter(f32[3,5], bool[3,5] in (1,2), f32[15])",
                                    "masked_scatter(f32[7], bool[7] in (0,1), f32[0])"},
                   })

OP(bincount,
   {
       .doc = "x of integers -> i64 [bins]: how often each of 0 ... bins - 1 occurs",
       .traits = kNoGradient,
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<BinsAttrs>(),
       .infer = infer_bincount,
       .no_gradient = "integer result",
       .examples = {"bincount(i64[9] in (0,5)) {bins=6}", "bincount(i32[2,3] in (0,2)) {bins=2}", "bincount(u8[0]) {bins=3}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// x and index have the same rank, and index is at most as long as x in every dimension except the axis. src has the shape of
// index and the dtype of x.
Tensor gather(const Arg& x, const Tensor& index, std::int64_t axis);
Tensor scatter(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis);
Tensor scatter_add(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis);
// `reduction` is "add", "mul", "max" or "min". Equal extremes share the gradient of max and min evenly, those of x included;
// the largest and the smallest with a NaN are NaN. The gradient of a product is exact at zeros; of its own derivative the
// terms at zeros are missing.
Tensor scatter_reduce(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis, const Name& reduction);
// index [m] lists slices of x along the axis.
Tensor index_select(const Arg& x, std::int64_t axis, const Tensor& index);
Tensor index_add(const Arg& x, std::int64_t axis, const Tensor& index, const Tensor& src);
// The elements of x at row-major positions. The result has the shape of index.
Tensor take(const Arg& x, const Tensor& index);
// table [n,d], ids of any shape -> [ids...,d].
Tensor embedding(const Arg& table, const Tensor& ids);
Tensor embedding_grad(const Arg& ids, const Tensor& dy, std::int64_t rows);
// The last dimension of indices holds tuples that name slices of x. The first batch_dims dimensions are common to x and
// indices.
Tensor gather_nd(const Arg& x, const Tensor& indices, std::int64_t batch_dims = 0);
// `reduction` of the attributes is "none", or one of those of scatter_reduce.
Tensor scatter_nd(const Arg& x, const Tensor& indices, const Tensor& src, const ScatterNdAttrs& attrs = {});
// The type of the result depends on the number of elements found. If `count` does not state this number, it is read on the
// host (inside a capture of running code, see control/mask_counts.h).
Tensor nonzero(const Arg& x, std::int64_t count = -1);
Tensor masked_select(const Arg& x, const Tensor& mask, std::int64_t count = -1);  // mask and x broadcast to each other
Tensor boolean_mask(const Arg& x, const Tensor& mask, std::int64_t count = -1);   // mask [a,b], x [a,b,...] -> [count,...]
Tensor masked_scatter(const Arg& x, const Tensor& mask, const Tensor& src);
Tensor masked_fill(const Arg& x, const Tensor& mask, const Arg& value);  // writes `value` where the mask is true
Tensor bincount(const Arg& x, std::int64_t bins = -1);  // -1: the largest element of x plus one, read on the host
#endif

}  // namespace TAPEDECK_API
#endif
