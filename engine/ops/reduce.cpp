#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

bool is_point(const Arg& x, std::int64_t axis) { return x.tensor().rank() == 0 && (axis == 0 || axis == -1); }

bool reduces(const Ints& axes, int dim) { return std::find(axes.begin(), axes.end(), dim) != axes.end(); }

void infer_reduce(Infer& f) {
  const auto& a = f.attributes<ReduceAttrs>();
  const Type& x = f.inputs[0];
  if (x.dtype == DType::boolean) f.fail(fmt::format("needs numbers, got {}", to_string(x)));
  const Type out{x.dtype, infer_reduced_shape(f, a.axes, a.keepdims)};
  const std::string_view name = f.op.name;
  if ((name == "max" || name == "min") && x.numel() == 0 && out.numel() > 0)
    f.fail(fmt::format("no extreme of an empty range of {}", to_string(x)));
  f.outputs.assign(1, out);
}

// The gradient of max and min. Equal extremes share it evenly.
void vjp_extreme(Vjp& b) {
  const auto& a = b.attributes<ReduceAttrs>();
  const Shape& shape = b.x(0).shape();
  const DType dtype = b.x(0).dtype();
  const Tensor hit = cast(equal(b.x(0), expand_reduced(b.y(), shape, a)), dtype);
  const Tensor count = sum(hit, a.axes, true);
  const Tensor dy = expand_reduced(b.dy(), shape, a);
  b.dx(0, mul(dy, div(hit, count)));
}

Tensor reduce(const Op& op, const Arg& x, const Ints& axes, bool keepdims) {
  const ReduceAttrs attrs{normal_axes(op.name, x, axes), keepdims};
  return apply(op, {&x.tensor()}, &attrs, x.site());
}

}  // namespace

Ints normal_axes(const char* op, const Arg& x, const Ints& axes) {
  if (!x.tensor().defined()) throw TypeError(error_text(op, "the operand is undefined", x.site()));
  const int rank = x.tensor().rank();
  Ints out;
  if (axes.size == 0)
    for (int i = 0; i < rank; ++i) out.push_back(i);
  if (axes.size == 1 && is_point(x, axes[0])) return out;
  for (std::int64_t axis : axes) out.push_back(axis < 0 ? axis + rank : axis);
  std::sort(out.items, out.items + out.size);
  return out;
}

std::int64_t normal_axis(const char* op, const Arg& x, std::int64_t axis) {
  if (!x.tensor().defined()) throw TypeError(error_text(op, "the operand is undefined", x.site()));
  return axis < 0 ? axis + x.tensor().rank() : axis;
}

AlongAxis::AlongAxis(const char* op, const Arg& x, std::int64_t axis)
    : x_(x), axis_(normal_axis(op, x, axis)), is_point_(is_point(x, axis)) {
  if (!is_point_) return;
  axis_ = 0;
  line_ = reshape(x, {1});
}

Tensor AlongAxis::result(Tensor made) const {
  if (!is_point_ || made.rank() == 0) return made;
  return reshape(Arg(made, x_.site().file, x_.site().line), {});
}

std::pair<Tensor, Tensor> AlongAxis::results(std::span<const Tensor> both) const { return {result(both[0]), result(both[1])}; }

Shape infer_reduced_shape(const Infer& f, const Ints& axes, bool keepdims) {
  const Type& x = f.inputs[0];
  for (int i = 0; i < axes.size; ++i) {
    if (!valid_axis(axes[i], x.shape.rank)) f.fail(fmt::format("axis {} is outside {}", axes[i], to_string(x)));
    if (i > 0 && axes[i] <= axes[i - 1]) f.fail("axes must ascend and not repeat");
  }
  if (axes.size == 0 && x.shape.rank > 0) f.fail("axes must be listed");
  Shape shape;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (!reduces(axes, i))
      shape.sizes[shape.rank++] = x.shape[i];
    else if (keepdims)
      shape.sizes[shape.rank++] = 1;
  }
  return shape;
}

void infer_require_axis(const Infer& f, std::int64_t axis) {
  if (!valid_axis(axis, f.inputs[0].shape.rank)) f.fail(fmt::format("axis {} is outside {}", axis, to_string(f.inputs[0])));
}

Tensor sum(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::sum, x, axes, keepdims); }
Tensor mean(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::mean, x, axes, keepdims); }
Tensor max(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::max, x, axes, keepdims); }
Tensor min(const Arg& x, const Ints& axes, bool keepdims) { return reduce(ops::min, x, axes, keepdims); }

Tensor argmax(const Arg& x, std::int64_t axis) {
  const AlongAxis along("argmax", x, axis);
  const AxisAttrs attrs{along.axis()};
  return along.result(apply(ops::argmax, {&along.operand()}, &attrs, x.site()));
}

Tensor expand_reduced(const Tensor& dy, const Shape& shape, const ReduceAttrs& attrs) {
  if (attrs.keepdims) return broadcast_to(dy, shape);
  Shape kept = shape;
  for (std::int64_t axis : attrs.axes) kept.sizes[axis] = 1;
  return broadcast_to(reshape(dy, kept), shape);
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/reduce.h>
