// Runs a program with loops and branches in several ways: eagerly, inside a capture, its graph through run_eagerly(),
// replayed from a plan on one and on two threads, and once more from its text. All ways must give the same bits. The
// observed peak must equal the planned peak.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck::testing {

using Program = std::function<Tensors(const Tensors&)>;

inline void expect_same(const Tensors& got, const Tensors& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].type(), wanted[i].type()) << what << ", result " << i;
    EXPECT_TRUE(bit_equal(contiguous(got[i].detach()), wanted[i])) << what << ", result " << i;
  }
}

inline Tensors copies(const Tensors& all) {
  const NoGrad no_grad;
  Tensors out;
  for (const Tensor& t : all) out.push_back(copy(t));
  return out;
}

// Returns the captured graph. `eager` receives the eager results.
inline Graph check_program(const Program& program, const Tensors& inputs, Tensors* eager = nullptr) {
  manual_seed(7);
  const Tensors wanted = copies(program(inputs));
  if (eager) *eager = wanted;
  manual_seed(7);
  Capture capture("program");
  Tensors inside;
  for (std::size_t i = 0; i < inputs.size(); ++i) inside.push_back(capture.input("x" + std::to_string(i), inputs[i]));
  const Tensors results = program(inside);
  for (std::size_t i = 0; i < results.size(); ++i) capture.output("y" + std::to_string(i), results[i]);
  Captured captured = capture.finish();
  expect_same(results, wanted, "inside the capture");

  const Graph& g = captured.graph;
  Tensors given, state;
  for (const Tensor& t : captured.inputs) given.push_back(t.detach());
  for (const Tensor& t : captured.state) state.push_back(t.detach());
  expect_same(run_eagerly(g, given, state).outputs, wanted, "the graph, node by node");
  PrintOptions all;
  all.max_inline_constant = 1 << 20;
  const std::string text = print(g, all);
  const Graph parsed = parse(text);
  EXPECT_EQ(print(parsed, all), text);
  expect_same(run_eagerly(parsed, given, state).outputs, wanted, "the graph from its text");
  const Plan plan = make_plan(g);
  for (int threads : {1, 2}) {
    Executor executor(plan, {.threads = threads});
    for (std::size_t i = 0; i < given.size(); ++i) executor.set_input(static_cast<int>(i), given[i]);
    for (std::size_t s = 0; s < state.size(); ++s) executor.set_state(executor.state_names()[s], state[s]);
    for (int run = 0; run < 2; ++run) {
      executor.run();
      expect_same(executor.outputs(), wanted, "replayed");
    }
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
  }
  return std::move(captured.graph);
}

inline Tensor leaf(std::vector<float> values, const Shape& shape = {}) {
  Tensor t = from_vector(values, shape);
  t.requires_grad(true);
  return t;
}

}  // namespace tapedeck::testing
