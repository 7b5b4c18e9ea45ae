// Programs with loops and their plans under budgets. Whatever the planner chooses, the bits are those of eager code, the
// observed peak is the planned one, and a larger budget never costs more.
#pragma once

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/engine/control/loops.h>

#include <tapedeck/tests/capture/replay/control_check.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::testing {

struct Recorded {
  Graph graph;
  Tensors inputs, wanted;
};

inline Tensor numbers(const Shape& shape, int seed) {
  std::vector<float> values;
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>((i * 7 + seed * 13) % 23 - 11) / 16);
  return leaf(values, shape);
}

inline Recorded recorded(const Program& program, Tensors inputs) {
  Recorded r;
  r.inputs = std::move(inputs);
  r.graph = check_program(program, r.inputs, &r.wanted);
  return r;
}

// The gradients of all inputs of a loss, and the loss.
inline Tensors with_gradients(const Tensor& loss, const Tensors& in) {
  Tensors results = gradients({loss}, in);
  results.push_back(loss);
  return results;
}

inline Plan plan_for(const Graph& g, std::int64_t budget, Strategy strategy = Strategy::automatic) {
  PlanOptions options;
  options.budget = budget;
  options.strategy = strategy;
  return make_plan(g, options);
}

inline void expect_replays(const Plan& plan, const Recorded& r) {
  manual_seed(7);  // as check_program() does
  Executor executor(plan);
  for (const std::string& name : executor.state_names()) executor.set_state(name, rng_state());
  for (std::size_t i = 0; i < r.inputs.size(); ++i) executor.set_input(static_cast<int>(i), r.inputs[i].detach());
  for (int run = 0; run < 2; ++run) {
    executor.run();
    expect_same(executor.outputs(), r.wanted, "replayed");
  }
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
}

// The reasons of the decisions that have these words.
inline std::set<std::string> reasons_with(const Plan& plan, const std::string& words) {
  std::set<std::string> reasons;
  for (const Decision& d : plan.decisions)
    if (d.reason.find(words) != std::string::npos) reasons.insert(d.reason);
  return reasons;
}

// `plan` was made for `budget`, and `keeps` without one: the plan fits, its costs are in order, and it replays the bits.
inline void expect_good(const Plan& plan, std::int64_t budget, const Plan& keeps, const Recorded& r) {
  EXPECT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_LE(plan.peak_bytes, budget);
  EXPECT_EQ(check_plan(plan), std::vector<std::string>());
  EXPECT_GE(plan.cost_us, plan.keep_all_cost_us);
  EXPECT_LE(plan.cost_lower_bound_us, plan.cost_us);
  EXPECT_EQ(plan.keep_all_cost_us, keeps.keep_all_cost_us);
  expect_replays(plan, r);
}

// Plans at budgets from the floor to the peak: each fits, replays the bits, and costs no more than the one before. Returns how
// many different decisions with these words there were.
inline std::size_t expect_good_at_all_budgets(const Recorded& r, const std::string& words, int budgets = 6) {
  const Plan keeps = make_plan(r.graph);
  const std::int64_t floor = plan_for(r.graph, 1).floor_bytes;
  EXPECT_TRUE(keeps.decisions.empty());
  std::set<std::string> decisions;
  double cost = 1e300;
  for (int i = 0; i < budgets; ++i) {
    const std::int64_t budget = floor + (keeps.peak_bytes - floor) * i / (budgets - 1);
    SCOPED_TRACE(budget);
    const Plan plan = plan_for(r.graph, budget);
    expect_good(plan, budget, keeps, r);
    EXPECT_LE(plan.cost_us, cost);
    cost = plan.cost_us;
    decisions.merge(reasons_with(plan, words));
  }
  return decisions.size();
}

}  // namespace tapedeck::testing
