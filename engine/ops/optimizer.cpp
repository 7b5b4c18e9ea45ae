#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void require_step_count(const Infer& f, const Type& t) {
  if (t != Type{DType::i64, {}}) f.fail(fmt::format("the step count must be i64[], not {}", to_string(t)));
}

void require_condition(const Infer& f, const Type& t) {
  if (t != Type{DType::boolean, {}}) f.fail(fmt::format("the condition of the step must be bool[], not {}", to_string(t)));
}

void require_rate(const Infer& f, const Type& w, const Type& rate) {
  if (rate.shape.rank == 0 && (rate.dtype == w.dtype || rate.dtype == DType::f32 || rate.dtype == DType::f64)) return;
  const bool half = w.dtype == DType::f16 || w.dtype == DType::bf16;
  const std::string own = half ? fmt::format(" or {}[]", dtype_name(w.dtype)) : "";
  f.fail(fmt::format("the learning rate must be f32[] or f64[]{}, not {}", own, to_string(rate)));
}

// Checks the parameter, the gradient, and `states` further operands of the parameter's type. Each of them except the gradient
// has a result that replaces it.
void infer_weights(Infer& f, std::size_t states) {
  const Type w = f.inputs[0];
  infer_require_float(f, w);
  for (std::size_t i = 1; i < 2 + states; ++i)
    if (f.inputs[i] != w)
      f.fail(fmt::format("operand {} has type {}, the parameter {}", i, to_string(f.inputs[i]), to_string(w)));
  f.outputs.assign(1 + states, w);
}

// Checks the operands of one update: after those of infer_weights() a step count if `counted`, the learning rate, and an
// optional condition.
void infer_step(Infer& f, std::size_t states, bool counted) {
  infer_weights(f, states);
  std::size_t at = 2 + states;
  if (counted) require_step_count(f, f.inputs[at++]);
  require_rate(f, f.inputs[0], f.inputs[at++]);
  if (at < f.inputs.size()) require_condition(f, f.inputs[at]);
}

// Infers sgd_momentum. It takes a step count only for dampening.
void infer_sgd_momentum(Infer& f) {
  const bool counted = !is_floating(f.inputs[3].dtype);
  if (f.inputs.size() < 4 + (counted ? 1u : 0u)) f.fail("the learning rate is missing");
  if (f.inputs.size() > 5 + (counted ? 1u : 0u)) f.fail(fmt::format("an operand too many: {}", to_string(f.inputs.back())));
  infer_step(f, 1, counted);
}

void infer_count_next(Infer& f) {
  require_step_count(f, f.inputs[0]);
  if (f.inputs.size() > 1) require_condition(f, f.inputs[1]);
  infer_same(f);
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/optimizer.h>
