#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

// Operands 0 .. n-1 share the parameter's type, operand `lr` is a 0-d number of its dtype.
void infer_optimizer(Infer& f, int lr, int n_outputs) {
  const Type& w = f.inputs[0];
  infer_require_float(f, w);
  for (int i = 1; i < lr; ++i)
    if (f.inputs[static_cast<std::size_t>(i)] != w)
      f.fail(fmt::format("operand {} has type {}, the parameter {}", i, to_string(f.inputs[static_cast<std::size_t>(i)]), to_string(w)));
  const Type& rate = f.inputs[static_cast<std::size_t>(lr)];
  if (rate != Type{w.dtype, {}}) f.fail(fmt::format("the learning rate must be {}[], not {}", dtype_name(w.dtype), to_string(rate)));
  const Type out = w;
  f.outputs.assign(static_cast<std::size_t>(n_outputs), out);
}

void require_count(const Infer& f, const Type& t) {
  if (t != Type{DType::i64, {}}) f.fail(fmt::format("the step count must be i64[], not {}", to_string(t)));
}

void infer_count_next(Infer& f) {
  require_count(f, f.inputs[0]);
  infer_same(f);
}

void infer_adamw(Infer& f) {
  require_count(f, f.inputs[4]);
  const Type like[6] = {f.inputs[0], f.inputs[1], f.inputs[2], f.inputs[3], f.inputs[5], {}};
  Infer without_count{f.op, std::span<const Type>(like, 5), f.attrs, f.outputs};
  infer_optimizer(without_count, 4, 3);
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/optimizer.h>
