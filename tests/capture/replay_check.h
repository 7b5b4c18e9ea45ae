// Compares replays with run_eagerly(), step by step. Most tests of the executor use it.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>

#include <gtest/gtest.h>

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

// Runs several steps with carried state on one, two and four threads.
inline void check_replay(const Graph& g, const PlanOptions& options = {}, int steps = 3) {
  const Plan plan = make_plan(g, options);
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  for (int threads : {1, 2, 4}) {
    Executor executor(plan, {.threads = threads});
    std::vector<Tensor> state = stand_ins(g, g.n_inputs, g.n_state, 7);
    set_all(executor, stand_ins(g, 0, g.n_inputs, 0), state);
    for (int step = 0; step < steps; ++step) {
      const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
      const EagerResult eager = run_eagerly(g, inputs, state);
      executor.run();
      expect_equal(executor, eager, "threads " + std::to_string(threads) + ", step " + std::to_string(step));
      state = eager.state;
    }
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes) << "threads " << threads;
  }
}

}  // namespace tapedeck
