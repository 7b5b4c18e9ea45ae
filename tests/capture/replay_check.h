// Compares replays with run_eagerly(), step by step. Most tests of the executor use it.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace tapedeck {

inline std::vector<Tensor> stand_ins(const Graph& g, ValueId first, std::int32_t count, std::uint64_t seed) {
  std::vector<Tensor> values;
  for (ValueId v = first; v < first + count; ++v) values.push_back(default_value(g.values[v].type, seed, g.value_name(v)));
  return values;
}

inline void set_all(Executor& executor, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state) {
  for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t s = 0; s < state.size(); ++s) executor.set_state(names[s], state[s]);
}

inline void expect_equal(const Executor& executor, const EagerResult& eager, const std::string& what) {
  const std::vector<Tensor> outputs = executor.outputs();
  ASSERT_EQ(outputs.size(), eager.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(bit_equal(outputs[i], eager.outputs[i])) << what << ", output " << i;
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t s = 0; s < names.size(); ++s)
    EXPECT_TRUE(bit_equal(executor.state(names[s]), eager.state[s])) << what << ", state " << names[s];
}

// Runs steps that carry state, and compares outputs and state of each with those of eager execution. New inputs come with every
// `steps_per_input`-th step.
inline void check_steps(Executor& executor, const Graph& g, std::vector<Tensor> state, int steps, int steps_per_input = 1,
                        const std::string& what = "") {
  set_all(executor, {}, state);
  std::vector<Tensor> inputs;
  for (int step = 0; step < steps; ++step) {
    if (step % steps_per_input == 0) {
      inputs = stand_ins(g, 0, g.n_inputs, static_cast<std::uint64_t>(step / steps_per_input));
      set_all(executor, inputs, {});
    }
    const EagerResult eager = run_eagerly(g, inputs, state);
    executor.run();
    expect_equal(executor, eager, what + "step " + std::to_string(step));
    state = eager.state;
  }
}

// A plan as the steps of programs get it: without a budget the floor, which no replay reads, is not looked for. That search
// takes most of the time of planning.
inline Plan plan_to_replay(const Graph& g, PlanOptions options = {}) {
  options.find_floor = false;
  return make_plan(g, options);
}

// Runs several steps with carried state on one, two and four threads.
inline void check_replay(const Graph& g, const PlanOptions& options = {}, int steps = 3) {
  const Plan plan = plan_to_replay(g, options);
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  for (int threads : {1, 2, 4}) {
    Executor executor(plan, {.threads = threads});
    check_steps(executor, g, stand_ins(g, g.n_inputs, g.n_state, 7), steps, 1, "threads " + std::to_string(threads) + ", ");
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes) << "threads " << threads;
  }
}

inline void expect_mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
}

namespace test {

// A step of training.
inline constexpr const char* kSgdStep = R"(graph step(%x: f32[4,3], %lr: f32[]) state(%w: f32[3,5], %b: f32[5]) {
    %h: f32[4,5] = matmul(%x, %w)
    %z: f32[4,5] = add(%h, %b)
    %y: f32[4,5] = tanh(%z)
    %l: f32[] = sum(%y) {axes=[0,1]}
    %g: f32[4,5] = tanh_grad(%y, %z)
    %xt: f32[3,4] = transpose(%x) {axes=[1,0]}
    %gw: f32[3,5] = matmul(%xt, %g)
    %gb: f32[5] = sum(%g) {axes=[0]}
    %w2: f32[3,5] = sgd(%w, %gw, %lr) {weight_decay=0.1}
    %b2: f32[5] = sgd(%b, %gb, %lr)
    return %l, %y
    update %w = %w2, %b = %b2
  })";

}  // namespace test
}  // namespace tapedeck
