#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/axes.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void require_axis(const Infer& f) {
  const std::int64_t axis = f.attributes<AxisAttrs>().axis;
  if (!valid_axis(axis, f.inputs[0].shape.rank)) f.fail(fmt::format("axis {} is outside {}", axis, to_string(f.inputs[0])));
  infer_require_float(f, f.inputs[0]);
}

void infer_axis_float(Infer& f) {
  require_axis(f);
  infer_same(f);
}

void infer_axis_like_first(Infer& f) {
  require_axis(f);
  infer_like_first(f);
}

void infer_one_hot(Infer& f) {
  const auto& a = f.attributes<OneHotAttrs>();
  const Type& labels = f.inputs[0];
  if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
    f.fail(fmt::format("labels must be i32 or i64, not {}", to_string(labels)));
  if (a.classes < 0 || a.classes > kMaxTypeBytes) f.fail("classes must not be negative");
  if (labels.shape.rank == kMaxRank) f.fail("too many dimensions");
  Type out{a.dtype, labels.shape};
  out.shape.sizes[out.shape.rank++] = a.classes;
  f.outputs.assign(1, out);
}

}  // namespace

Tensor softmax(const Arg& x, std::int64_t axis) {
  const AlongAxis along("softmax", x, axis);
  const AxisAttrs attrs{along.axis()};
  return along.result(apply(ops::softmax, {&along.operand()}, &attrs, x.site()));
}

Tensor log_softmax(const Arg& x, std::int64_t axis) {
  const AlongAxis along("log_softmax", x, axis);
  const AxisAttrs attrs{along.axis()};
  return along.result(apply(ops::log_softmax, {&along.operand()}, &attrs, x.site()));
}

Tensor one_hot(const Arg& labels, std::int64_t classes, DType dtype) {
  const OneHotAttrs attrs{classes, dtype};
  return apply(ops::one_hot, {&labels.tensor()}, &attrs, labels.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/softmax.h>
