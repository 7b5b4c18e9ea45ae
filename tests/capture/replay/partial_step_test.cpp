// Tests steps that run in parts. The oracle is the same graph, replayed as a whole or run eagerly.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::message_of;
using Floats = std::vector<float>;

// y = tanh(x w); dw = x^T (g tanh'(y)); w -= lr dw. The head gradient g is an input.
constexpr const char* kTraining = R"(graph train(%x: f32[4,3], %grad.y: f32[4,2], %lr: f32[]) state(%w: f32[3,2]) {
    %h: f32[4,2] = matmul(%x, %w)
    %y: f32[4,2] = tanh(%h)
    %gh: f32[4,2] = tanh_grad(%y, %grad.y)              [phase=backward]
    %xt: f32[3,4] = transpose(%x) {axes=[1,0]}          [phase=backward]
    %gw: f32[3,2] = matmul(%xt, %gh)                    [phase=backward]
    %w2: f32[3,2] = sgd(%w, %gw, %lr)                   [phase=update]
    return %y, %gw
    update %w = %w2
  })";

struct Training {
  Graph graph = parse(kTraining);
  Tensor x = default_value({DType::f32, {4, 3}}, 1, "x"), head = default_value({DType::f32, {4, 2}}, 1, "g");
  Tensor lr = scalar(0.5), w = default_value({DType::f32, {3, 2}}, 1, "w");

  Executor executor(int threads, double segment_us = 50) const {
    Executor e(make_plan(graph, {.segment_us = segment_us}), {.threads = threads});
    e.set_input("x", x);
    e.set_input("lr", lr);
    e.set_state("w", w);
    return e;
  }
  EagerResult eager(const Tensor& from) const { return run_eagerly(graph, {x, head, lr}, {from}); }
};

TEST(ExecutorParts, PhasesApartGiveTheWholeStep) {
  const Training t;
  for (int threads : {1, 2})
    for (double segment_us : {0.001, 50.0}) {
      Executor e = t.executor(threads, segment_us);
      Tensor w = t.w;
      for (int step = 0; step < 3; ++step) {
        const EagerResult eager = t.eager(w);
        e.run(Phase::forward);
        EXPECT_TRUE(bit_equal(e.output("y"), eager.outputs[0])) << "there after the forward pass";
        EXPECT_THROW(e.output("gw"), ExecutionError);
        EXPECT_TRUE(bit_equal(e.state("w"), w)) << "not written yet";
        e.set_input("grad.y", t.head);
        e.run(Phase::backward);
        EXPECT_TRUE(bit_equal(e.output("gw"), eager.outputs[1]));
        e.run(Phase::update);
        expect_equal(e, eager, "a step in phases");
        w = eager.state[0];
        EXPECT_EQ(e.nodes_left(), 0);
      }
    }
}

TEST(ExecutorParts, PhasesKeepTheirOrder) {
  const Training t;
  Executor e = t.executor(1);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(Phase::backward); }), "backward cannot run yet: forward is due");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(Phase::update); }), "forward is due");
  e.run(Phase::forward);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(Phase::update); }), "update cannot run yet: backward is due");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(Phase::backward); }), "never set: input 'grad.y'");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(); }), "a step is under way (2 of 6 nodes have run, next is `%gh: ");
  e.run(Phase::forward);  // another forward pass begins a new step
  e.set_input("grad.y", t.head);
  e.run(Phase::backward);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(Phase::backward); }), "backward has run in this step");
  e.run(Phase::update);
  expect_equal(e, t.eager(t.w), "after all that");
}

// This executor runs only forward. The state that training would change stays as it is.
TEST(ExecutorParts, ForwardOnlyOfATrainingGraph) {
  const Training t;
  Executor e = t.executor(1);
  for (double scale : {1.0, 2.0}) {
    const Tensor x = run_eagerly(parse("graph m(%x: f32[4,3], %k: f32[]) { %y: f32[4,3] = mul(%x, %k) return %y }"),
                                 {t.x, scalar(scale)}, {})
                         .outputs[0];
    e.restart();
    e.set_input("x", x);
    e.run(Phase::forward);
    EXPECT_TRUE(bit_equal(e.output("y"), run_eagerly(t.graph, {x, t.head, t.lr}, {t.w}).outputs[0]));
    EXPECT_TRUE(bit_equal(e.state("w"), t.w));
  }
  EXPECT_THROW(Executor(make_plan(parse("graph f(%x: f32[2]) { %y: f32[2] = neg(%x) return %y }"))).run(Phase::backward),
               UsageError);
}

TEST(ExecutorParts, AHeadGradientThatIsBakedInCannotBeGiven) {
  const Graph forward = parse("graph f(%x: f32[3]) { %y: f32[3] = tanh(%x) return y=%y }");
  const ValueId target[] = {1}, wrt[] = {0};
  GraphGradient baked = gradient(forward, target, wrt);
  baked.graph.outputs.push_back(baked.gradients[0]);
  baked.graph.output_names.push_back("dx");
  Executor fixed(make_plan(baked.graph));
  EXPECT_MENTIONS(message_of<UsageError>([&] { fixed.set_input("grad.y", tensor({1, 2, 3})); }), "heads_as_inputs");

  GraphGradient open = gradient(forward, target, wrt, {.heads_as_inputs = true});
  open.graph.outputs.push_back(open.gradients[0]);
  open.graph.output_names.push_back("dx");
  Executor e(make_plan(open.graph));
  e.set_input("x", tensor({0, 1, 2}));
  e.run(Phase::forward);
  const Floats y = floats_of(e.output("y"));
  e.set_input("grad.y", tensor({1, 10, 100}));
  e.run(Phase::backward);
  const Floats dx = floats_of(e.output("dx"));
  for (int i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(dx[i], Floats({1, 10, 100})[i] * (1 - y[i] * y[i]));
}

// A forward node behind a backward node of the same segment cannot run before it. The error names both nodes.
TEST(ExecutorParts, NamesTheNodeThatStandsBetweenPhases) {
  const Graph g = parse(R"(graph mixed(%x: f32[2]) {
    %a: f32[2] = neg(%x)
    %b: f32[2] = exp(%x)   [phase=backward]
    %c: f32[2] = tanh(%a)
    return %b, %c
  })");
  Executor whole(make_plan(g, {.segment_us = 50}));
  whole.set_input("x", tensor({1, 2}));
  if (whole.plan().segments.size() == 1) {
    const std::string text = message_of<UsageError>([&] { whole.run(Phase::forward); });
    EXPECT_MENTIONS(text, "`%c: f32[2] = tanh(%a)` (forward) runs behind `%b: f32[2] = exp(%x)` (backward)");
  }
  whole.run();
  EXPECT_EQ(floats_of(whole.outputs()[1]), floats_of(run_eagerly(g, {tensor({1, 2})}, {}).outputs[1]));
}

// Clones for backward nodes, and nodes that read gradients, run with the backward pass, whatever their own phase is.
TEST(ExecutorParts, ClonesRunWithTheirReaders) {
  const Graph g = parse(R"(graph again(%x: f32[2]) {
    %a: f32[2] = exp(%x)
    %y: f32[2] = tanh(%a)
    %g: f32[2] = neg(%y)          [phase=backward]
    %a2: f32[2] = exp(%x)         [of=%a, after=[%g]]
    %d: f32[2] = mul(%g, %a2)     [phase=backward]
    %n: f32[] = sum(%d) {axes=[0]}
    return %y, %d, %n
  })");
  for (int threads : {1, 2}) {
    Executor e(make_plan(g, {.strategy = Strategy::none, .segment_us = 0.001}), {.threads = threads});
    e.set_input("x", tensor({0.5f, 0.25f}));
    e.run(Phase::forward);
    EXPECT_NO_THROW(e.output("y"));
    EXPECT_THROW(e.value("n"), ExecutionError);
    e.run(Phase::backward);
    expect_equal(e, run_eagerly(g, {tensor({0.5f, 0.25f})}, {}), "clones");
  }
}

// ---- steps of single nodes ----

TEST(ExecutorParts, StepsToAnyNodeAndOnFromThere) {
  const Training t;
  for (int threads : {1, 2})
    for (int first = 0; first <= 6; ++first) {
      Executor e = t.executor(threads, 0.001);
      e.set_input("grad.y", t.head);
      EXPECT_EQ(e.step(first), 6 - first);
      EXPECT_EQ(e.nodes_left(), 6 - first);
      if (first < 6) e.resume();
      expect_equal(e, t.eager(t.w), "first " + std::to_string(first));
      EXPECT_THROW(e.resume(), ExecutionError) << "nothing is under way";
      EXPECT_EQ(e.observed_peak_bytes(), e.plan().peak_bytes);
    }
}

// Like MXNet's PartialForward: each call runs one node and returns the number of nodes left; none runs past the end.
TEST(ExecutorParts, D23_PartialForward) {
  const Training t;
  Executor e = t.executor(1);
  e.set_input("grad.y", t.head);
  const std::int32_t n = e.plan().graph.node_count();
  for (std::int32_t k = 0; k < n; ++k) EXPECT_EQ(e.step(), n - k - 1);
  expect_equal(e, t.eager(t.w), "one by one");
  e.set_state("w", t.w);
  EXPECT_EQ(e.step(1000), 0);
  expect_equal(e, t.eager(t.w), "past the end");
  EXPECT_THROW(e.step(-1), UsageError);
}

TEST(ExecutorParts, RunsToANamedValue) {
  const Training t;
  Executor e = t.executor(2, 0.001);
  e.set_input("grad.y", t.head);
  e.run_to("y");
  EXPECT_TRUE(bit_equal(e.value("y"), t.eager(t.w).outputs[0]));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.value("gh"); }), "%gh is not there yet: `%gh: ");
  EXPECT_THROW(e.run_to("y"), UsageError);
  EXPECT_THROW(e.run_to("x"), UsageError);
  EXPECT_THROW(e.run_to("nope"), UsageError);
  e.run_to("gw");
  EXPECT_TRUE(bit_equal(e.value("gw"), t.eager(t.w).outputs[1]));
  EXPECT_TRUE(bit_equal(e.value("w"), t.w));
  e.resume();
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.value("w"); }), "`%w2: f32[3,2] = sgd(");
}

TEST(ExecutorParts, AnInputCanChangeUntilItIsRead) {
  const Training t;
  Executor e = t.executor(1);
  e.run(Phase::forward);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.set_input("x", t.x); }),
                  "'x' was read by `%h: f32[4,2] = matmul(%x, %w)`");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.set_state("w", t.w); }), "a step is under way");
  e.set_input("grad.y", t.head);
  e.set_input("grad.y", t.head);
  e.resume();
  expect_equal(e, t.eager(t.w), "after all");
}

TEST(ExecutorParts, RestartDropsTheStep) {
  const Training t;
  Executor e = t.executor(2, 0.001);
  e.set_input("grad.y", t.head);
  e.step(4);
  e.restart();
  EXPECT_THROW(e.outputs(), ExecutionError);
  e.run();
  expect_equal(e, t.eager(t.w), "from the beginning");
}

// After a write to state the step cannot start again: it must be finished, or all state must be set again.
TEST(ExecutorParts, RestartAfterAStateWriteTears) {
  const Graph g = parse(R"(graph early(%x: f32[2]) state(%s: f32[2]) {
    %t: f32[2] = add(%s, %x)
    %y: f32[2] = neg(%x)
    return %y
    update %s = %t
  })");
  Executor e(make_plan(g));
  e.set_input("x", tensor({1, 2}));
  e.set_state("s", tensor({10, 10}));
  e.run_to("t");
  e.resume();
  EXPECT_EQ(floats_of(e.state("s")), (Floats{11, 12}));
  e.run_to("t");
  e.restart();
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(); }), "set it again first");
  e.set_state("s", tensor({0, 0}));
  e.run();
  EXPECT_EQ(floats_of(e.state("s")), (Floats{1, 2}));
}

TEST(ExecutorParts, OverwrittenValuesSayByWhom) {
  const Graph g = parse(R"(graph chain(%x: f32[64]) {
    %a: f32[64] = exp(%x)
    %b: f32[64] = neg(%a)
    %c: f32[64] = tanh(%b)
    %d: f32[] = sum(%c) {axes=[0]}
    return %d
  })");
  Executor e(make_plan(g));
  const Tensor x = default_value({DType::f32, {64}}, 1, "x");
  e.set_input("x", x);
  e.run_to("c");
  EXPECT_NO_THROW(e.value("c"));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.value("a"); }), "is not there any more: `");
  EXPECT_TRUE(bit_equal(e.value("x"), x));
}

// Executors of one family (made by reshape) use the same bytes.
TEST(ExecutorParts, AnotherExecutorOnTheSameMemoryDropsTheStep) {
  const Graph g = parse(R"(graph f(%x: f32[4]) state(%s: f32[2]) {
    %y: f32[4] = exp(%x)
    %z: f32[4] = neg(%y)
    %t: f32[2] = neg(%s)
    %u: f32[] = sum(%z) {axes=[0]}
    return %u
    update %s = %t
  })");
  Executor a(make_plan(g, {.segment_us = 0.001}));
  a.set_state("s", tensor({1, 2}));
  Executor b = a.reshape({{"x", {DType::f32, {3}}}});
  a.set_input("x", tensor({1, 2, 3, 4}));
  a.run_to("y");
  b.set_input("x", tensor({1, 2, 3}));
  b.run();
  EXPECT_THROW(a.resume(), ExecutionError) << "its values are gone";
  a.set_input("x", tensor({1, 2, 3, 4}));
  a.run_to("t");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { b.run(); }), "in the middle of a step that has written state");
  a.resume();
  EXPECT_EQ(floats_of(a.state("s")), (Floats{1, 2}));
}

}  // namespace
}  // namespace tapedeck
