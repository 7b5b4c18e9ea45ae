#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void infer_compare(Infer& f) { f.outputs.assign(1, Type{DType::boolean, infer_broadcast_shape(f)}); }

void infer_logical(Infer& f) {
  for (const Type& t : f.inputs)
    if (t.dtype != DType::boolean) f.fail(fmt::format("needs bools, got {}", to_string(t)));
  infer_broadcast(f);
}

void infer_where(Infer& f) {
  if (f.inputs[0].dtype != DType::boolean) f.fail(fmt::format("the condition must be bool, not {}", to_string(f.inputs[0])));
  const Shape values = infer_broadcast_shape(f, 1);
  Shape all;
  if (!broadcast_shapes(f.inputs[0].shape, values, &all))
    f.fail(
        fmt::format("shapes do not broadcast: {} and {}", to_string(f.inputs[0]), to_string(Type{f.inputs[1].dtype, values})));
  f.outputs.assign(1, Type{f.inputs[1].dtype, all});
}

void infer_cast(Infer& f) { f.outputs.assign(1, Type{f.attributes<CastAttrs>().dtype, f.inputs[0].shape}); }

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/elementwise.h>
