// Inference, cost and gradients of sorting. The gradient of a sort moves each element of dy back to the position that the
// saved index names; no operand is kept.
#include <tapedeck/engine/ops/sort.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/index.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

// The kernels number the elements of a line with 32 bits.
void require_line(const Infer& f, std::int64_t axis) {
  infer_require_axis(f, axis);
  if (f.inputs[0].shape[static_cast<int>(axis)] > 0x7fffffff)
    f.fail(fmt::format("axis {} of {} is too long", axis, to_string(f.inputs[0])));
}

void infer_sorted(Infer& f) { require_line(f, f.attributes<SortAttrs>().axis); }

void infer_topk(Infer& f) {
  const auto& a = f.attributes<TopkAttrs>();
  const Type& x = f.inputs[0];
  require_line(f, a.axis);
  if (a.k < 0 || a.k > x.shape[static_cast<int>(a.axis)])
    f.fail(fmt::format("k {} does not fit axis {} of {}", a.k, a.axis, to_string(x)));
  Shape shape = x.shape;
  shape.sizes[a.axis] = a.k;
  f.outputs.assign({Type{x.dtype, shape}, Type{DType::i64, shape}});
}

void infer_searchsorted(Infer& f) {
  const Type &rows = f.inputs[0], &values = f.inputs[1];
  if (rows.dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(rows)));
  if (rows.dtype != values.dtype)
    f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(rows), to_string(values)));
  if (rows.shape.rank < 1) f.fail("the sorted operand needs at least one dimension");
  bool fits = rows.shape.rank == 1 || rows.shape.rank == values.shape.rank;
  for (int d = 0; fits && d + 1 < rows.shape.rank; ++d) fits = rows.shape[d] == values.shape[d];
  if (!fits) f.fail(fmt::format("values {} do not fit rows {}", to_string(values), to_string(rows)));
  f.outputs.assign(1, Type{DType::i64, values.shape});
}

// kernels/cpu/reduction/sort.cpp sorts at most this many lines at a time. Each line has two buffers of items.
constexpr std::int64_t kSlots = 16;

std::int64_t slot_bytes(const Type& x, std::int64_t axis, std::int64_t items) {
  const std::int64_t length = x.shape[static_cast<int>(axis)];
  const std::int64_t lines = length == 0 ? 0 : x.numel() / length;
  return std::min(lines, kSlots) * items * (dtype_size(x.dtype) == 8 ? 16 : 8);
}

std::int64_t sort_workspace(std::span<const Type> inputs, std::span<const Type>, const void* attrs) {
  const std::int64_t axis = static_cast<const SortAttrs*>(attrs)->axis;
  return slot_bytes(inputs[0], axis, 2 * inputs[0].shape[static_cast<int>(axis)]);
}

std::int64_t topk_workspace(std::span<const Type> inputs, std::span<const Type>, const void* attrs) {
  const auto& a = *static_cast<const TopkAttrs*>(attrs);
  return slot_bytes(inputs[0], a.axis, std::min(inputs[0].shape[static_cast<int>(a.axis)], 2 * a.k + 64));
}

// The cost of one comparison of a sort on the nominal core, in flops.
constexpr double kFlopsPerComparison = 150;

template <class Attrs>
Cost cost_sort(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  const auto axis = static_cast<int>(static_cast<const Attrs*>(attrs)->axis);
  Cost cost = cost_like_copy(inputs, outputs, attrs);
  const double length = static_cast<double>(outputs[0].shape[axis]);
  cost.flops = kFlopsPerComparison * static_cast<double>(inputs[0].numel()) * std::min(std::log2(length + 2), 10.0);
  return cost;
}

template <class Attrs>
void vjp_by_index(Vjp& b) {
  b.dx(0, scatter_add(zeros(b.x(0).shape(), b.dy().dtype()), b.y(1), b.dy(), b.attributes<Attrs>().axis));
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Arg& x, std::int64_t axis, bool descending) {
  const AlongAxis along("sort", x, axis);
  const SortAttrs attrs{along.axis(), descending};
  return along.results(apply_all(ops::sort, {&along.operand(), 1}, &attrs, x.site()));
}

std::pair<Tensor, Tensor> topk(const Arg& x, std::int64_t k, std::int64_t axis, bool largest, bool sorted) {
  const AlongAxis along("topk", x, axis);
  const TopkAttrs attrs{k, along.axis(), largest, sorted};
  return along.results(apply_all(ops::topk, {&along.operand(), 1}, &attrs, x.site()));
}

Tensor argsort(const Arg& x, std::int64_t axis, bool descending) {
  const AlongAxis along("argsort", x, axis);
  const SortAttrs attrs{along.axis(), descending};
  return along.result(apply(ops::argsort, {&along.operand()}, &attrs, x.site()));
}

std::pair<Tensor, Tensor> kthvalue(const Arg& x, std::int64_t k, std::int64_t axis, bool keepdims) {
  const AlongAxis along("kthvalue", x, axis);
  if (k < 1) throw TypeError(error_text("kthvalue", fmt::format("k counts from 1, got {}", k), x.site()));
  const auto [values, indices] = topk(Arg(along.operand(), x.site().file, x.site().line), k, along.axis(), false);
  const int dim = static_cast<int>(along.axis());
  Shape shape;
  for (int d = 0; d < values.rank(); ++d)
    if (d != dim || keepdims) shape.sizes[shape.rank++] = d == dim ? 1 : values.shape()[d];
  const Tensor both[] = {reshape(slice(values, dim, k - 1, k), shape), reshape(slice(indices, dim, k - 1, k), shape)};
  return along.results(both);
}

Tensor searchsorted(const Arg& sorted, const Arg& values, bool right) {
  const SearchAttrs attrs{right};
  const auto [rows, wanted] = promoted("searchsorted", sorted, values);
  return apply(ops::searchsorted, {&rows, &wanted}, &attrs, sorted.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/sort.h>
