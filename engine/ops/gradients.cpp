#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void infer_all_finite(Infer& f) {
  for (const Type& t : f.inputs) infer_require_float(f, t);
  f.outputs.assign(1, Type{DType::boolean, {}});
}

void infer_global_norm(Infer& f) {
  DType dtype = DType::f32;
  for (const Type& t : f.inputs) {
    infer_require_float(f, t);
    if (t.dtype == DType::f64) dtype = DType::f64;
  }
  f.outputs.assign(1, Type{dtype, {}});
}

void infer_loss_scale(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  const Type expected[3] = {{f.inputs[0].dtype, {}}, {DType::i64, {}}, {DType::boolean, {}}};
  for (std::size_t i = 0; i < 3; ++i)
    if (f.inputs[i] != expected[i])
      f.fail(fmt::format("operand {} must be {}, not {}", i, to_string(expected[i]), to_string(f.inputs[i])));
  const auto& a = f.attributes<LossScaleAttrs>();
  if (!(a.growth >= 1) || !(a.backoff > 0 && a.backoff <= 1) || a.interval < 1)
    f.fail("needs growth >= 1, 0 < backoff <= 1 and interval >= 1");
  f.outputs.assign({expected[0], expected[1]});
}

}  // namespace

Tensor all_finite(const std::vector<Tensor>& tensors, Site site) {
  return apply_all(ops::all_finite, tensors, nullptr, site)[0];
}
Tensor global_norm(const std::vector<Tensor>& tensors, Site site) {
  return apply_all(ops::global_norm, tensors, nullptr, site)[0];
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/gradients.h>
