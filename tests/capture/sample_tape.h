// A small training step with everything that a file can hold: inputs, state of two dtypes, a constant in the text and one in
// the data, several phases, and clones if there is a budget.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/text/text.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace tapedeck {

inline Graph sample_graph() {
  static const auto table = [] {
    auto data = std::make_shared<std::vector<float>>(32);
    std::iota(data->begin(), data->end(), 0.5f);
    return data;
  }();
  const TensorLookup lookup = [](const std::string&, Literal* literal) {
    literal->data = {table, table->data()};
    return true;
  };
  return parse(R"(graph train_step(%x: f32[4,8], %lr: f32[]) state(%w: f32[8,8], %"odd name": f32[3], %rng: i64[2]) {
  %small: f32[8] = constant() {value=[1,2,3,4,5,6,7,8]}
  %table: f32[4,8] = constant() {tensor="table"}
  %h: f32[4,8] = matmul(%x, %w)                      [path="fc1", site="train.cpp:12"]
  %a: f32[4,8] = exp(%h)                             [path="fc1"]
  %b: f32[4,8] = tanh(%a)
  %c: f32[4,8] = dropout(%b, %rng) {p=0.5, path="drop"}
  %d: f32[4,8] = sigmoid(%c)
  %e: f32[4,8] = add(%d, %small)
  %loss: f32[] = sum(%e) {axes=[0,1]}
  %e2: f32[4,8] = mul(%e, %table)                    [phase=backward]
  %d2: f32[4,8] = mul(%e2, %d)                       [phase=backward]
  %c2: f32[4,8] = mul(%d2, %c)                       [phase=backward]
  %b2: f32[4,8] = mul(%c2, %b)                       [phase=backward]
  %g: f32[4,8] = mul(%b2, %a)                        [phase=backward]
  %t: f32[8,4] = transpose(%x) {axes=[1,0]}
  %dw: f32[8,8] = matmul(%t, %g)                     [phase=backward, twin=%h]
  %w2: f32[8,8] = sgd(%w, %dw, %lr)                  [phase=update]
  %rng2: i64[2] = rng_next(%rng)
  return loss=%loss, %g
  update %w = %w2, %rng = %rng2
})",
               "sample", lookup);
}

// budget_percent as in PlanOptions; 0 makes no plan.
inline TapeFile sample_tape(double budget_percent = 0) {
  TapeFile file;
  file.captured = sample_graph();
  const Graph& g = file.captured;
  for (ValueId v = 0; v < g.n_inputs; ++v) file.inputs[g.value_name(v)] = default_value(g.values[v].type, 1, g.value_name(v));
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
    file.state[g.values[v].name.str()] = default_value(g.values[v].type, 2, g.value_name(v));
  file.metadata = {{"model", "mlp"}, {"batch", "4"}, {"note", "größer \"als\" null"}};
  if (budget_percent > 0) file.plan = make_plan(g, {.budget_percent = budget_percent});
  return file;
}

}  // namespace tapedeck
