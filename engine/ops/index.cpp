// Inference and gradients of indexing, and the functions for authors. The gradient of a read is a sum into zeros at the same
// indices, and the gradient of a write is a read:
//
//       y = gather(x, index)        dx = scatter_add(zeros, index, dy)
//       y = scatter_add(x, index, src)        dx = dy,   dsrc = gather(dy, index)
#include <tapedeck/engine/ops/index.h>

#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/scan.h>
#include <tapedeck/engine/ops/statistics.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tapedeck {
namespace {

// ---- inference ----

void require_index(const Infer& f, const Type& index) {
  if (index.dtype != DType::i32 && index.dtype != DType::i64)
    f.fail(fmt::format("the index must be i32 or i64, not {}", to_string(index)));
}

// Calls f.fail if an index with elements refers to an axis of size 0.
void require_places(const Infer& f, std::int64_t n, const Type& x, const Type& index) {
  if (n == 0 && index.numel() > 0)
    f.fail(fmt::format("the index {} names elements of an empty axis of {}", to_string(index), to_string(x)));
}

void require_addable(const Infer& f) {
  if (f.inputs[0].dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(f.inputs[0])));
}

void require_src(const Infer& f, const Type& src, const Shape& shape) {
  const Type wanted{f.inputs[0].dtype, shape};
  if (src != wanted) f.fail(fmt::format("the source must be {}, not {}", to_string(wanted), to_string(src)));
}

// Checks that x and index have the same rank, and that index is not longer than x except along the axis.
void infer_axis_index(Infer& f, std::int64_t axis) {
  const Type &x = f.inputs[0], &index = f.inputs[1];
  infer_require_axis(f, axis);
  require_index(f, index);
  bool fits = index.shape.rank == x.shape.rank;
  for (int d = 0; fits && d < x.shape.rank; ++d) fits = d == axis || index.shape[d] <= x.shape[d];
  if (!fits) f.fail(fmt::format("the index {} does not fit {} along axis {}", to_string(index), to_string(x), axis));
  require_places(f, x.shape[static_cast<int>(axis)], x, index);
}

void infer_axis_index(Infer& f) { infer_axis_index(f, f.attributes<AxisAttrs>().axis); }

void infer_scatter(Infer& f) {
  infer_axis_index(f);
  require_src(f, f.inputs[2], f.inputs[1].shape);
  infer_same(f);
}

bool is_reduction(const Name& name) {
  const std::string_view n = name.view();
  return n == "mul" || n == "max" || n == "min";
}

void infer_scatter_reduce(Infer& f) {
  const auto& a = f.attributes<ScatterReduceAttrs>();
  require_addable(f);
  if (!is_reduction(a.reduction))
    f.fail(fmt::format("reduction is \"mul\", \"max\" or \"min\", not \"{}\"", a.reduction.view()));
  infer_axis_index(f, a.axis);
  require_src(f, f.inputs[2], f.inputs[1].shape);
  infer_same(f);
}

// The shape of x, with the axis as long as the one-dimensional index.
Shape selected_shape(const Infer& f) {
  const Type &x = f.inputs[0], &index = f.inputs[1];
  const std::int64_t axis = f.attributes<AxisAttrs>().axis;
  infer_require_axis(f, axis);
  require_index(f, index);
  if (index.shape.rank != 1) f.fail(fmt::format("the index needs one dimension, got {}", to_string(index)));
  require_places(f, x.shape[static_cast<int>(axis)], x, index);
  Shape shape = x.shape;
  shape.sizes[axis] = index.shape[0];
  return shape;
}

void infer_index_select(Infer& f) { f.outputs.assign(1, Type{f.inputs[0].dtype, selected_shape(f)}); }

void infer_index_add(Infer& f) {
  require_addable(f);
  require_src(f, f.inputs[2], selected_shape(f));
  infer_same(f);
}

void infer_embedding(Infer& f) {
  const Type &table = f.inputs[0], &ids = f.inputs[1];
  require_index(f, ids);
  if (table.shape.rank != 2) f.fail(fmt::format("the table needs two dimensions, got {}", to_string(table)));
  require_places(f, table.shape[0], table, ids);
  if (ids.shape.rank == kMaxRank) f.fail(fmt::format("too many dimensions: {}", to_string(ids)));
  Type out{table.dtype, ids.shape};
  out.shape.sizes[out.shape.rank++] = table.shape[1];
  f.outputs.assign(1, out);
}

void infer_embedding_grad(Infer& f) {
  const Type &ids = f.inputs[0], &dy = f.inputs[1];
  const std::int64_t rows = f.attributes<RowsAttrs>().rows;
  require_index(f, ids);
  infer_require_float(f, dy);
  bool fits = dy.shape.rank == ids.shape.rank + 1;
  for (int d = 0; fits && d < ids.shape.rank; ++d) fits = dy.shape[d] == ids.shape[d];
  if (!fits) f.fail(fmt::format("the gradient {} does not fit ids {}", to_string(dy), to_string(ids)));
  const std::int64_t sizes[2] = {rows, dy.shape[ids.shape.rank]};
  if (checked_bytes(dy.dtype, sizes) < 0) f.fail(fmt::format("no table has {} rows of {}", rows, sizes[1]));
  f.outputs.assign(1, Type{dy.dtype, {rows, sizes[1]}});
  require_places(f, rows, f.outputs[0], ids);
}

// The shape of the slices of x that the tuples of `indices` name.
Shape named_shape(const Infer& f, std::int64_t batch_dims) {
  const Type &x = f.inputs[0], &indices = f.inputs[1];
  require_index(f, indices);
  const int rank = x.shape.rank, q = indices.shape.rank;
  if (q < 1) f.fail("the indices need at least one dimension");
  if (batch_dims < 0 || batch_dims >= q || batch_dims > rank)
    f.fail(fmt::format("batch_dims {} does not fit {} and {}", batch_dims, to_string(x), to_string(indices)));
  const int batch = static_cast<int>(batch_dims);
  for (int d = 0; d < batch; ++d)
    if (x.shape[d] != indices.shape[d])
      f.fail(fmt::format("batch dimensions differ: {} and {}", to_string(x), to_string(indices)));
  const std::int64_t k = indices.shape[q - 1];
  if (k > rank - batch) f.fail(fmt::format("tuples of {} are too long for {}", k, to_string(x)));
  for (int d = batch; d < batch + static_cast<int>(k); ++d) require_places(f, x.shape[d], x, indices);
  const int rest = rank - batch - static_cast<int>(k);
  if (q - 1 + rest > kMaxRank) f.fail(fmt::format("too many dimensions: {} by {}", to_string(x), to_string(indices)));
  Shape shape;
  for (int d = 0; d < q - 1; ++d) shape.sizes[shape.rank++] = indices.shape[d];
  for (int d = rank - rest; d < rank; ++d) shape.sizes[shape.rank++] = x.shape[d];
  return shape;
}

void infer_gather_nd(Infer& f) {
  f.outputs.assign(1, Type{f.inputs[0].dtype, named_shape(f, f.attributes<GatherNdAttrs>().batch_dims)});
}

void infer_scatter_nd(Infer& f) {
  const auto& a = f.attributes<ScatterNdAttrs>();
  if (a.reduction.view() == "add" || is_reduction(a.reduction))
    require_addable(f);
  else if (a.reduction.view() != "none")
    f.fail(fmt::format("reduction is \"none\", \"add\", \"mul\", \"max\" or \"min\", not \"{}\"", a.reduction.view()));
  require_src(f, f.inputs[2], named_shape(f, a.batch_dims));
  infer_same(f);
}

void require_count(const Infer& f, const Type& mask) {
  const std::int64_t count = f.attributes<CountAttrs>().count;
  if (count < 0 || count > mask.numel()) f.fail(fmt::format("a count of {} does not fit {}", count, to_string(mask)));
}

void require_mask(const Infer& f, const Type& mask) {
  if (mask.dtype != DType::boolean) f.fail(fmt::format("the mask must be bool, not {}", to_string(mask)));
  if (mask.shape != f.inputs[0].shape)
    f.fail(fmt::format("the mask {} does not fit {}", to_string(mask), to_string(f.inputs[0])));
}

void infer_masked_select(Infer& f) {
  require_mask(f, f.inputs[1]);
  require_count(f, f.inputs[1]);
  f.outputs.assign(1, Type{f.inputs[0].dtype, {f.attributes<CountAttrs>().count}});
}

void infer_masked_scatter(Infer& f) {
  require_mask(f, f.inputs[1]);
  const Type& src = f.inputs[2];
  if (src.shape.rank != 1 || src.dtype != f.inputs[0].dtype)
    f.fail(fmt::format("the source must be {}[n], not {}", dtype_name(f.inputs[0].dtype), to_string(src)));
  if (src.numel() > f.inputs[0].numel()) f.fail(fmt::format("{} holds more than {}", to_string(src), to_string(f.inputs[0])));
  infer_same(f);
}

void infer_bincount(Infer& f) {
  const std::int64_t bins[1] = {f.attributes<BinsAttrs>().bins};
  const DType dtype = f.inputs[0].dtype;
  if (is_floating(dtype) || dtype == DType::boolean) f.fail(fmt::format("needs integers, got {}", to_string(f.inputs[0])));
  if (checked_bytes(DType::i64, bins) < 0) f.fail(fmt::format("{} bins cannot be", bins[0]));
  f.outputs.assign(1, Type{DType::i64, {bins[0]}});
}

// ---- workspace ----

// The kernel (kernels/cpu/movement/index.cpp) sorts the m indices by the n positions that they name, unless slices are short.
// This is the memory for it.
std::int64_t grouping_bytes(std::int64_t n, std::int64_t m, std::int64_t inner) {
  return inner < 16 ? 0 : (n + 1 + m) * static_cast<std::int64_t>(sizeof(std::int64_t));
}

// The kernel (kernels/cpu/movement/mask.cpp) counts elements in blocks of 16384. This is the memory for the counts.
std::int64_t compaction_bytes(const Type& mask) {
  return (mask.numel() / 16384 + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
}

// ---- gradients ----

// The numbers 0, 1, 2, ... in this shape.
Tensor numbers(const Shape& shape) {
  return reshape(cumsum(full({shape.numel()}, 1, DType::i64), 0, {.exclusive = true}), shape);
}

// The gradient of scatter. Of several source elements for one position only the last one stays, and only that one gets a
// gradient. To find these elements, their row-major numbers are scattered in their place.
void vjp_scatter(Vjp& b) {
  const std::int64_t axis = b.attributes<AxisAttrs>().axis;
  const Tensor &index = b.x(1), &dy = b.dy();
  const Shape& shape = index.shape();
  if (b.needs(0)) b.dx(0, scatter(dy, index, zeros(shape, dy.dtype()), axis));
  if (!b.needs(2)) return;
  const Tensor number = numbers(shape);
  const Tensor written = scatter(full(b.x(0).shape(), -1, DType::i64), index, number, axis);
  b.dx(2, where(equal(gather(written, index, axis), number), gather(dy, index, axis), 0));
}

// The reads and writes of one scatter at its places: those of one index, or of tuples of indices.
struct Places {
  std::function<Tensor(const Tensor& base, const Tensor& src, const char* reduction)> scatter;
  std::function<Tensor(const Tensor& x)> gather;
};

// The gradient of the largest and the smallest. Equal extremes at one place share it evenly, as in max() and min().
void vjp_scattered_extreme(Vjp& b, const Places& at) {
  const Tensor &x = b.x(0), &src = b.x(2), &y = b.y();
  const Tensor x_hits = equal(x, y), src_hits = equal(src, at.gather(y));
  const Tensor sharers = at.scatter(cast(x_hits, DType::f32), cast(src_hits, DType::f32), "add");
  const Tensor share = div(b.dy(), cast(sharers, b.dy().dtype()));
  if (b.needs(0)) b.dx(0, where(x_hits, share, 0));
  if (b.needs(2)) b.dx(2, where(src_hits, at.gather(share), 0));
}

// The product of all other factors at the place of a factor. `product` is that of the factors that are not zero, and `zeros`
// says how many are zero: with a zero elsewhere the product of the others is 0.
Tensor other_factors(const Tensor& factor, const Tensor& product, const Tensor& zeros) {
  const Tensor is_zero = equal(factor, 0);
  const Tensor alone = equal(zeros, cast(is_zero, zeros.dtype()));
  return where(alone, div(product, where(is_zero, 1, factor)), 0);
}

void vjp_scattered_product(Vjp& b, const Places& at) {
  const Tensor &x = b.x(0), &src = b.x(2), &dy = b.dy();
  if (b.needs(0)) b.dx(0, mul(dy, at.scatter(ones(x.shape(), dy.dtype()), src, "mul")));
  if (!b.needs(2)) return;
  const Tensor x_zero = equal(x, 0), src_zero = equal(src, 0);
  const Tensor product = at.scatter(where(x_zero, 1, x), where(src_zero, 1, src), "mul");
  const Tensor zeros = at.scatter(cast(x_zero, DType::f32), cast(src_zero, DType::f32), "add");
  b.dx(2, mul(at.gather(dy), other_factors(src, at.gather(product), at.gather(zeros))));
}

void vjp_reduction(Vjp& b, const Name& reduction, const Places& at) {
  reduction.view() == "mul" ? vjp_scattered_product(b, at) : vjp_scattered_extreme(b, at);
}

void vjp_scatter_reduce(Vjp& b) {
  const auto& a = b.attributes<ScatterReduceAttrs>();
  const Tensor& index = b.x(1);
  vjp_reduction(
      b, a.reduction,
      {[&](const Tensor& base, const Tensor& src, const char* how) { return scatter_reduce(base, index, src, a.axis, how); },
       [&](const Tensor& x) { return gather(x, index, a.axis); }});
}

void vjp_scatter_nd(Vjp& b) {
  const auto& a = b.attributes<ScatterNdAttrs>();
  const Tensor &indices = b.x(1), &dy = b.dy();
  if (is_reduction(a.reduction))
    return vjp_reduction(b, a.reduction,
                         {[&](const Tensor& base, const Tensor& src, const char* how) {
                            return scatter_nd(base, indices, src, {how, a.batch_dims});
                          },
                          [&](const Tensor& x) { return gather_nd(x, indices, a.batch_dims); }});
  if (a.reduction.view() == "add") {
    b.dx(0, dy);
    if (b.needs(2)) b.dx(2, gather_nd(dy, indices, a.batch_dims));
    return;
  }
  if (b.needs(0)) b.dx(0, scatter_nd(dy, indices, zeros(b.x(2).shape(), dy.dtype()), a));
  if (!b.needs(2)) return;
  Shape tuples, named, beside = b.x(2).shape();
  for (int d = 0; d + 1 < indices.rank(); ++d) tuples.sizes[tuples.rank++] = indices.shape()[d];
  const std::int64_t k = indices.size(-1);
  for (int d = 0; d < a.batch_dims + k; ++d) named.sizes[named.rank++] = b.x(0).shape()[d];
  for (int d = tuples.rank; d < beside.rank; ++d) beside.sizes[d] = 1;
  const Tensor number = numbers(tuples);
  const Tensor written = scatter_nd(full(named, -1, DType::i64), indices, number, a);
  const Tensor stayed = reshape(equal(gather_nd(written, indices, a.batch_dims), number), beside);
  b.dx(2, where(stayed, gather_nd(dy, indices, a.batch_dims), 0));
}

// ---- functions for authors ----

std::int64_t counted(const Arg& x, const Tensor& mask, std::int64_t count) {
  if (count >= 0) return count;
  if (capturing_counts() && !mask.abstract()) return read_count(mask);
  return static_cast<std::int64_t>(count_nonzero(Arg(mask, x.site().file, x.site().line)).item(x.site()));
}

// Notes a node whose count was read in a capture, because a replay may count another number.
Tensor counted_result(Tensor result, std::int64_t asked) {
  if (asked < 0 && capturing_counts()) note_dynamic_count();
  return result;
}

void require_defined(const char* op, const Arg& x, const Tensor& other) {
  if (!x.tensor().defined() || !other.defined()) refuse(op, x, "an operand is undefined");
}

}  // namespace

Tensor gather(const Arg& x, const Tensor& index, std::int64_t axis) {
  const AxisAttrs attrs{normal_axis("gather", x, axis)};
  return apply(ops::gather, {&x.tensor(), &index}, &attrs, x.site());
}

Tensor scatter(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis) {
  const AxisAttrs attrs{normal_axis("scatter", x, axis)};
  return apply(ops::scatter, {&x.tensor(), &index, &src}, &attrs, x.site());
}

Tensor scatter_add(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis) {
  const AxisAttrs attrs{normal_axis("scatter_add", x, axis)};
  return apply(ops::scatter_add, {&x.tensor(), &index, &src}, &attrs, x.site());
}

Tensor scatter_reduce(const Arg& x, const Tensor& index, const Tensor& src, std::int64_t axis, const Name& reduction) {
  if (reduction.view() == "add") return scatter_add(x, index, src, axis);
  const ScatterReduceAttrs attrs{normal_axis("scatter_reduce", x, axis), reduction};
  return apply(ops::scatter_reduce, {&x.tensor(), &index, &src}, &attrs, x.site());
}

Tensor index_select(const Arg& x, std::int64_t axis, const Tensor& index) {
  const AxisAttrs attrs{normal_axis("index_select", x, axis)};
  return apply(ops::index_select, {&x.tensor(), &index}, &attrs, x.site());
}

Tensor index_add(const Arg& x, std::int64_t axis, const Tensor& index, const Tensor& src) {
  const AxisAttrs attrs{normal_axis("index_add", x, axis)};
  return apply(ops::index_add, {&x.tensor(), &index, &src}, &attrs, x.site());
}

Tensor take(const Arg& x, const Tensor& index) {
  require_defined("take", x, index);
  const Tensor flat = reshape(x, Shape{x.tensor().numel()}), places = reshape(index, Shape{index.numel()});
  return reshape(index_select(Arg(flat, x.site().file, x.site().line), 0, places), index.shape());
}

Tensor embedding(const Arg& table, const Tensor& ids) {
  return apply(ops::embedding, {&table.tensor(), &ids}, nullptr, table.site());
}

Tensor embedding_grad(const Arg& ids, const Tensor& dy, std::int64_t rows) {
  const RowsAttrs attrs{rows};
  return apply(ops::embedding_grad, {&ids.tensor(), &dy}, &attrs, ids.site());
}

Tensor gather_nd(const Arg& x, const Tensor& indices, std::int64_t batch_dims) {
  const GatherNdAttrs attrs{batch_dims};
  return apply(ops::gather_nd, {&x.tensor(), &indices}, &attrs, x.site());
}

Tensor scatter_nd(const Arg& x, const Tensor& indices, const Tensor& src, const ScatterNdAttrs& attrs) {
  return apply(ops::scatter_nd, {&x.tensor(), &indices, &src}, &attrs, x.site());
}

Tensor nonzero(const Arg& x, std::int64_t count) {
  const CountAttrs attrs{counted(x, x.tensor(), count)};
  return counted_result(apply(ops::nonzero, {&x.tensor()}, &attrs, x.site()), count);
}

Tensor masked_select(const Arg& x, const Tensor& mask, std::int64_t count) {
  require_defined("masked_select", x, mask);
  Shape shape;
  if (!broadcast_shapes(x.tensor().shape(), mask.shape(), &shape))
    refuse("masked_select", x,
           fmt::format("shapes do not broadcast: {} and {}", to_string(x.tensor().type()), to_string(mask.type())));
  const Tensor wide = x.tensor().shape() == shape ? x.tensor() : broadcast_to(x, shape);
  const Tensor held = mask.shape() == shape ? mask : broadcast_to(mask, shape);
  const CountAttrs attrs{counted(x, held, count)};
  return counted_result(apply(ops::masked_select, {&wide, &held}, &attrs, x.site()), count);
}

Tensor boolean_mask(const Arg& x, const Tensor& mask, std::int64_t count) {
  require_defined("boolean_mask", x, mask);
  const Shape &shape = x.tensor().shape(), &lead = mask.shape();
  const bool fits = mask.dtype() == DType::boolean && lead.rank >= 1 && lead.rank <= shape.rank &&
                    std::equal(lead.begin(), lead.end(), shape.begin());
  if (!fits)
    refuse("boolean_mask", x,
           fmt::format("the mask {} does not fit the first dimensions of {}", to_string(mask.type()),
                       to_string(x.tensor().type())));
  Shape rows{lead.numel()};
  for (int d = lead.rank; d < shape.rank; ++d) rows.sizes[rows.rank++] = shape[d];
  const Tensor flat = reshape(mask, Shape{lead.numel()}), table = reshape(x, rows);
  const Arg from(table, x.site().file, x.site().line);
  const Tensor places = nonzero(Arg(flat, x.site().file, x.site().line), count);
  if (count < 0 && capturing_counts()) return gather_nd(from, places);  // no attribute holds the count
  return index_select(from, 0, reshape(places, Shape{places.size(0)}));
}

Tensor masked_scatter(const Arg& x, const Tensor& mask, const Tensor& src) {
  return apply(ops::masked_scatter, {&x.tensor(), &mask, &src}, nullptr, x.site());
}

Tensor masked_fill(const Arg& x, const Tensor& mask, const Arg& value) {
  return where(Arg(mask, x.site().file, x.site().line), value, x);
}

Tensor bincount(const Arg& x, std::int64_t bins) {
  const Tensor& t = x.tensor();
  if (bins < 0 && t.defined() && !is_floating(t.dtype()) && t.dtype() != DType::boolean)
    bins = t.numel() == 0 ? 0 : static_cast<std::int64_t>(max(x).item(x.site())) + 1;
  const BinsAttrs attrs{std::max<std::int64_t>(bins, 0)};
  return apply(ops::bincount, {&t}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/index.h>
