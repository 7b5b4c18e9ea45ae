// Tests looking at values whose bytes are gone, going back in a step, and breakpoints. The oracles are eager code, and a replay
// that keeps every value. inspect_random_test.cpp does the same with random graphs.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;
using Tensors = std::vector<Tensor>;

Plan plan_of(const Graph& g) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  return make_plan(g, options);
}

// A step of training in which every value lies in the bytes of an earlier one, and %w2 in the state %w.
constexpr const char* kStep = R"(graph step(%x: f32[4], %lr: f32[]) state(%w: f32[4]) {
  %a: f32[4] = exp(%x)
  %b: f32[4] = mul(%a, %w)
  %c: f32[4] = tanh(%b)
  %s: f32[] = sum(%c) {axes=[0], keepdims=false}
  %w2: f32[4] = sgd(%w, %c, %lr)
  %d: f32[] = neg(%s)
  return %d
  update %w = %w2
})";

struct Step {
  Graph graph = parse(kStep);
  Tensor x = tensor({-1, 0, 0.5, 2}), lr = scalar(0.5), w = tensor({1, 2, 3, 4});
  Tensor a = exp(x), b = a * w, c = tanh(b);

  Executor executor(const ExecutorOptions& options = {}) const {
    Executor e(plan_of(graph), options);
    set_all(e, {x, lr}, {w});
    return e;
  }
  EagerResult eager() const { return run_eagerly(graph, {x, lr}, {w}); }
};

// ---- inspect ----

TEST(Inspect, CopiesWhatIsThereAndComputesAgainWhatIsGone) {
  const Step t;
  Executor e = t.executor();
  e.run_to("c");
  EXPECT_THROW(e.value("a"), ExecutionError) << "the plan has given its bytes away";
  const Inspected a = e.inspect("a"), b = e.inspect("b"), c = e.inspect("c");
  EXPECT_TRUE(bit_equal(a.value, t.a));
  EXPECT_EQ(a.nodes, 1) << "exp";
  EXPECT_GE(a.extra_bytes, 2 * 16) << "the operand and the result";
  EXPECT_TRUE(bit_equal(b.value, t.b));
  EXPECT_EQ(b.nodes, 2) << "exp and mul";
  EXPECT_TRUE(bit_equal(c.value, t.c));
  EXPECT_EQ(c.nodes, 0) << "its bytes are there";
  EXPECT_EQ(c.extra_bytes, 16);
  EXPECT_EQ(e.observed_peak_bytes(), e.plan().peak_bytes) << "memory of its own";
  e.resume();
  expect_equal(e, t.eager(), "the step");
}

TEST(Inspect, GivesCopiesThatStay) {
  const Step t;
  Executor e = t.executor();
  e.run_to("c");
  const Tensor a = e.inspect("a").value, c = e.inspect("c").value, x = e.inspect("x").value;
  e.resume();
  e.set_input("x", zeros({4}));
  e.run();
  EXPECT_TRUE(bit_equal(a, t.a));
  EXPECT_TRUE(bit_equal(c, t.c));
  EXPECT_TRUE(bit_equal(x, t.x));
}

TEST(Inspect, SaysWhichNodeIsStillToRun) {
  const Step t;
  Executor e = t.executor();
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.inspect("a"); }), "`%a: f32[4] = exp(%x)` has not run; it is node 1 of 6");
  EXPECT_TRUE(bit_equal(e.inspect("w").value, t.w)) << "state and inputs are there without a step";
  e.step(2);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.inspect("s"); }), "it is node 4 of 6 in the order of the plan");
  EXPECT_MENTIONS(message_of<UsageError>([&] { e.inspect("ww"); }), "has no value 'ww': did you mean 'w'?");
  EXPECT_THROW(e.inspect(-1), UsageError);
  EXPECT_THROW(e.inspect(e.plan().graph.value_count()), UsageError);
}

TEST(Inspect, StateHasTheValueFromBeforeTheStep) {
  const Step t;
  Executor kept = t.executor(), not_kept = t.executor();
  kept.keep_steps();
  for (Executor* e : {&kept, &not_kept}) e->run_to("w2");
  EXPECT_TRUE(bit_equal(kept.inspect("w").value, t.w));
  EXPECT_TRUE(bit_equal(kept.inspect("w2").value, t.eager().state[0]));
  EXPECT_TRUE(bit_equal(kept.inspect("b").value, t.b)) << "from the old state";
  EXPECT_EQ(kept.kept_bytes(), 16);
  EXPECT_EQ(not_kept.kept_bytes(), 0);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { not_kept.inspect("b"); }),
                  "{momentum=0.0, weight_decay=0.0}` has overwritten it; keep_steps() keeps");
  EXPECT_TRUE(bit_equal(not_kept.inspect("a").value, t.a)) << "does not need the state";
  kept.resume();
  EXPECT_TRUE(bit_equal(kept.inspect("b").value, t.b)) << "behind the end of the step, too";
  kept.run();
  EXPECT_EQ(kept.kept_bytes(), 0) << "a whole step keeps nothing";
}

// A loop runs again as a whole. The values of its body are others in every pass.
TEST(Inspect, LoopsRunAgainAndTheirBodiesCannotBeSeen) {
  const Graph g = parse(R"(graph g(%x: f32[3]) {
    %n: i64[], %y: f32[3] = while(%x) {carried=1} (%i: i64[], %c: f32[3]) {
      %s: f32[] = sum(%c) {axes=[0], keepdims=false}
      %limit: f32[] = constant() {value=[10.0]}
      %go: bool[] = less(%s, %limit)
      return %go
    } (%j: i64[], %k: f32[3]) {
      %inner: f32[3] = add(%k, %k)
      return %inner
    }
    %z: f32[3] = exp(%y)
    %t: f32[3] = tanh(%z)
    return %t, %n
  })");
  const Tensors inputs = {tensor({1, 0.25, 0.5})};
  Executor e(plan_of(g));
  set_all(e, inputs, {});
  e.run_to("t");
  EXPECT_TRUE(bit_equal(e.inspect("y").value, tensor({8, 2, 4})));
  EXPECT_TRUE(bit_equal(e.inspect("z").value, exp(tensor({8, 2, 4}))));
  EXPECT_MENTIONS(message_of<UsageError>([&] { e.inspect("inner"); }), "has one inside");
  expect_equal(e, run_eagerly(g, inputs, {}), "the step");
}

// A view of a value that is gone, a part of a joined value, and draws of random numbers.
TEST(Inspect, ViewsPartsAndRandomNumbers) {
  const Graph g = parse(R"(graph g(%x: f32[2,3]) state(%rng: i64[2] [role=rng]) {
    %a: f32[2,3] = exp(%x)
    %t: f32[3,2] = transpose(%a) {axes=[1,0]}
    %u: f32[2,3] = uniform(%rng) {shape=[2,3]}
    %m: f32[2,3] = mul(%u, %x)
    %j: f32[4,3] = concat(%a, %m) {axis=0}
    %s: f32[] = sum(%j) {axes=[0,1], keepdims=false}
    %e: f32[] = exp(%s)
    %next: i64[2] = rng_next(%rng)
    return %e
    update %rng = %next
  })");
  const Tensors inputs = stand_ins(g, 0, 1, 1);
  const Tensor rng = from_vector(std::vector<std::int64_t>{7, 1}, {2});
  Graph all = g;
  all.updates.clear();
  all.outputs = {1 + 1, 1 + 2, 1 + 3, 1 + 4, 1 + 5};
  all.output_names.assign(5, {});
  const Tensors wanted = run_eagerly(all, inputs, {rng}).outputs;
  PlanOptions options;
  options.ordering = Ordering::recorded;
  options.level = OptimizationLevel::none;
  Executor e(make_plan(g, options));
  set_all(e, inputs, {rng});
  e.keep_steps();
  for (const std::int32_t left : {e.step(7), e.step(100)}) {
    EXPECT_GE(left, 0);
    const char* const names[] = {"a", "t", "u", "m", "j"};
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(bit_equal(e.inspect(names[i]).value, wanted[i])) << names[i];
  }
}

// ---- bytes that were written from outside ----

// A value may not be computed from an input or from state of another step, whether the step is kept or not.
TEST(Inspect, RefusesInputsAndStateThatAreNotThoseOfTheStep) {
  const Step t;
  Executor e = t.executor();
  e.run();
  EXPECT_TRUE(bit_equal(e.inspect("a").value, t.a)) << "behind a whole step";
  e.set_input("x", zeros({4}));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.inspect("a"); }), "that needs %x, and it has been set since the step");
  e.run();
  EXPECT_TRUE(bit_equal(e.inspect("a").value, ones({4})));

  const Graph g = parse(R"(graph v(%x: f32[2,3]) {
    %t: f32[3,2] = transpose(%x) {axes=[1,0]}
    %y: f32[3,2] = exp(%t)
    return %y
  })");
  Executor views(make_plan(g, {.level = OptimizationLevel::none}));
  views.set_input("x", ones({2, 3}));
  views.run();
  EXPECT_TRUE(bit_equal(views.inspect("t").value, ones({3, 2})));
  views.set_input("x", zeros({2, 3}));
  EXPECT_THROW(views.inspect("t"), ExecutionError) << "a view of the old input";
}

// Nodes have used the old bytes of %w, and no node is still to read them, so the step goes on. The old bytes are gone.
TEST(Inspect, DoesNotTakeStateThatTheCallerWroteInTheStep) {
  const Graph g = parse(R"(graph g(%x: f32[4]) state(%w: f32[4]) {
    %a: f32[4] = mul(%x, %w)
    %b: f32[4] = exp(%a)
    %c: f32[4] = tanh(%b)
    %d: f32[4] = exp(%c)
    %w2: f32[4] = mul(%x, %x)
    return %d
    update %w = %w2
  })");
  const Tensor x = tensor({1, 2, 3, 4}), before = tensor({0.5, 0.25, 0, 1});
  for (const bool keeps : {false, true}) {
    Executor e(plan_of(g));
    Tensor w = from_bytes(before.type(), before.data());
    e.set_input("x", x);
    e.bind_state("w", w);
    e.keep_steps(keeps);
    e.run_to("c");
    EXPECT_TRUE(bit_equal(e.inspect("a").value, x * before));
    {
      const NoGrad off;
      add_(w, ones({4}));
    }
    EXPECT_THROW(e.inspect("a"), ExecutionError);
    e.run_to("d");
    EXPECT_THROW(e.inspect("a"), ExecutionError);
    e.resume();
    EXPECT_THROW(e.inspect("a"), ExecutionError) << "a copy made later is not that of the old bytes";
    EXPECT_THROW(e.back(), ExecutionError);
    EXPECT_TRUE(bit_equal(w, x * x));
  }
}

// ---- effects ----

struct Counted {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  Captured captured;
  Tensor x = tensor({1, 2, 3});

  Counted() {
    Capture scope("main");
    const Tensor in = scope.input("x", x);
    const Tensors twice = exclude_from_capture({exp(in)}, [calls = calls](const Tensors& xs) {
      ++*calls;
      return Tensors{xs[0] * 2 + *calls};  // another value in every call
    });
    const Tensor y = tanh(twice[0]);
    scope.output("y", exp(exp(y)));
    captured = scope.finish();
    *calls = 0;
  }
};

TEST(Inspect, EffectsRunOnce) {
  const Counted t;
  Executor e(plan_of(t.captured.graph));
  e.set_input("x", t.x);
  e.keep_steps();
  e.step(0);
  e.resume();
  EXPECT_EQ(*t.calls, 1);
  const Tensor y = e.output("y");
  for (ValueId v = 0; v < e.plan().graph.value_count(); ++v) e.inspect(v);
  EXPECT_EQ(*t.calls, 1);
  e.back(e.plan().graph.node_count());
  e.resume();
  EXPECT_EQ(*t.calls, 1) << "going on from before the effect takes its results";
  EXPECT_TRUE(bit_equal(e.output("y"), y));
  e.step(0);
  e.resume();
  EXPECT_EQ(*t.calls, 2) << "another step";
}

TEST(Inspect, WithoutKeepStepsAnEffectStopsTheComputation) {
  const Counted t;
  Executor e(plan_of(t.captured.graph));
  e.set_input("x", t.x);
  e.step(0);
  e.resume();
  int refused = 0;
  for (ValueId v = 0; v < e.plan().graph.value_count(); ++v) {
    try {
      e.inspect(v);
    } catch (const ExecutionError& error) {
      EXPECT_MENTIONS(std::string(error.what()), "has an effect, so it runs once");
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(*t.calls, 1);
}

// ---- back ----

TEST(Back, GivesTheStateBackAndRunsAgain) {
  const Step t;
  Executor e = t.executor();
  e.keep_steps();
  e.step(5);
  EXPECT_FALSE(bit_equal(e.state("w"), t.w));
  EXPECT_EQ(e.back(), 2) << "before sgd";
  EXPECT_TRUE(bit_equal(e.state("w"), t.w));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.inspect("w2"); }), "has not run");
  EXPECT_EQ(e.back(100), 6) << "to the start";
  e.resume();
  expect_equal(e, t.eager(), "the step");
  EXPECT_EQ(e.back(), 1) << "from behind the end";
  e.resume();
  expect_equal(e, t.eager(), "the step again");
  EXPECT_THROW(e.back(-1), UsageError);
}

TEST(Back, ABoundTensorGetsItsBytesBack) {
  const Step t;
  Executor e = t.executor();
  Tensor w = from_bytes(t.w.type(), t.w.data());
  e.bind_state("w", w);
  e.keep_steps();
  e.step(5);
  EXPECT_FALSE(bit_equal(w, t.w));
  e.back();
  EXPECT_TRUE(bit_equal(w, t.w));
  e.step(1);
  e.restart();
  EXPECT_TRUE(bit_equal(w, t.w)) << "a kept step that is dropped does not tear its state";
  e.run();
  EXPECT_TRUE(bit_equal(w, t.eager().state[0]));
}

TEST(Back, RefusesWhenSomethingWasWrittenFromOutside) {
  const Step t;
  Executor e = t.executor();
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.back(); }), "the step is not kept; call keep_steps()");
  Tensor w = from_bytes(t.w.type(), t.w.data());
  e.bind_state("w", w);
  e.keep_steps();
  e.step(5);
  {
    const NoGrad off;
    add_(w, ones({4}));
  }
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.back(); }), "state 'w' has been written from outside");
  EXPECT_TRUE(bit_equal(e.inspect("b").value, t.b)) << "the copy of the state is still there";
  e.resume();
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.back(); }), "state 'w' has been written from outside");

  Executor other = t.executor();
  other.keep_steps();
  other.step(0);
  other.resume();
  other.set_input("x", zeros({4}));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { other.back(); }), "input 'x' has been set since the step");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { other.inspect("a"); }), "that needs %x, and it has been set since the step");
  other.set_state("w", t.w);
  EXPECT_THROW(other.back(), ExecutionError);
}

TEST(Back, AKeptStepThatFailsGivesTheStateBack) {
  const Graph g = parse(R"(graph f(%x: f32[2], %n: i32[1], %zero: i32[1]) state(%w: f32[2]) {
    %w2: f32[2] = add(%w, %x)
    %q: i32[1] = div(%n, %zero)
    return %q
    update %w = %w2
  })");
  const auto number = [](int value) { return from_vector(std::vector<std::int32_t>{value}, {1}); };
  Executor e(plan_of(g));
  set_all(e, {tensor({1, 2}), number(4), number(0)}, {tensor({5, 6})});
  e.keep_steps();
  e.step(1);
  EXPECT_EQ(message_of<ExecutionError>([&] { e.resume(); }).find("must be set again"), std::string::npos);
  EXPECT_TRUE(bit_equal(e.state("w"), tensor({5, 6})));
  e.set_input("zero", number(2));
  e.run();
  EXPECT_TRUE(bit_equal(e.state("w"), tensor({6, 8})));
}

TEST(Back, AnotherMemberOfThePoolEndsIt) {
  const Step t;
  const auto pool = std::make_shared<ReplayPool>();
  Executor a = t.executor({.pool = pool, .name = "a"}), b = t.executor({.pool = pool, .name = "b"});
  a.keep_steps();
  a.step(0);
  a.resume();
  b.run();
  EXPECT_THROW(a.back(), ExecutionError);
  EXPECT_THROW(a.inspect("a"), ExecutionError);
  EXPECT_NO_THROW(a.inspect("x"));
}

TEST(KeepSteps, IsRefusedInTheMiddleOfAStepAndLetsGo) {
  const Step t;
  Executor e = t.executor();
  e.step(1);
  EXPECT_THROW(e.keep_steps(), ExecutionError);
  e.resume();
  e.keep_steps();
  e.step(5);
  EXPECT_EQ(e.kept_bytes(), 16);
  e.resume();
  e.keep_steps(false);
  EXPECT_EQ(e.kept_bytes(), 0);
  EXPECT_THROW(e.back(), ExecutionError);
}

// ---- breakpoints ----

TEST(Breakpoints, StopBehindNodesAndNames) {
  const Step t;
  Executor e = t.executor();
  Stop stop = e.run_until({.nodes = {2, 1}});
  EXPECT_EQ(stop.reason, StopReason::node);
  EXPECT_EQ(stop.node, 1);
  EXPECT_EQ(stop.nodes_left, 4);
  EXPECT_TRUE(bit_equal(e.value("b"), t.b));
  stop = e.run_until({.nodes = {0, 1}, .names = {"su?"}});
  EXPECT_EQ(stop.reason, StopReason::name) << "nodes that have run do not count";
  EXPECT_EQ(stop.node, 3);
  EXPECT_STREQ(stop_reason_name(stop.reason), "name");
  stop = e.run_until({});
  EXPECT_EQ(stop.reason, StopReason::end);
  EXPECT_EQ(stop.node, kNone);
  EXPECT_EQ(stop.nodes_left, 0);
  expect_equal(e, t.eager(), "the step");
  EXPECT_MENTIONS(message_of<UsageError>([&] { e.run_until({.nodes = {6}}); }), "no node 6: the plan has nodes 0 to 5");
  EXPECT_MENTIONS(message_of<UsageError>([&] { e.run_until({.names = {"relu"}}); }), "is named like 'relu'");
}

TEST(Breakpoints, StopBehindTheFirstNaN) {
  const Graph g = parse(R"(graph g(%x: f32[3]) state(%w: f32[3]) {
    %inf: f32[3] = div(%w, %x)
    %nan: f32[3] = mul(%inf, %x)
    %y: f32[3] = add(%nan, %w)
    %w2: f32[3] = add(%w, %x)
    return %y
    update %w = %w2
  })");
  const Tensors inputs = {tensor({1, 0, 2})}, state = {tensor({1, 1, 1})};
  for (const int threads : {1, 2})
    for (const double segment_us : {0.001, 50.0}) {
      PlanOptions options;
      options.ordering = Ordering::recorded;
      options.segment_us = segment_us;
      Executor e(make_plan(g, options), {.threads = threads});
      set_all(e, inputs, state);
      Stop stop = e.run_until({.nan = true, .infinite = true});
      EXPECT_EQ(stop.reason, StopReason::not_finite);
      EXPECT_EQ(stop.value, e.plan().graph.nodes[stop.node].first_output);
      EXPECT_EQ(e.plan().graph.value_name(stop.value), "inf");
      EXPECT_EQ(stop.element, 1);
      EXPECT_TRUE(std::isinf(stop.number));
      EXPECT_EQ(e.nodes_left(), 3);
      stop = e.run_until({.nan = true});
      EXPECT_EQ(e.plan().graph.value_name(stop.value), "nan");
      EXPECT_TRUE(std::isnan(stop.number));
      EXPECT_EQ(e.nodes_left(), 2);
      EXPECT_TRUE(bit_equal(e.state("w"), state[0])) << "the update has not run";
      e.resume();
      expect_equal(e, run_eagerly(g, inputs, state), "the step");
    }
}

TEST(Breakpoints, AFlagPausesBehindTheNodeThatRuns) {
  const Step t;
  Executor e = t.executor();
  const std::atomic<bool> pause{true};
  const Stop stop = e.run_until({.pause = &pause});
  EXPECT_EQ(stop.reason, StopReason::pause);
  EXPECT_EQ(stop.node, 0);
  EXPECT_EQ(stop.nodes_left, 5);
  e.resume();
  expect_equal(e, t.eager(), "the step");
}

// Monitors see the node behind which a part was paused, once.
TEST(Breakpoints, MonitorsSeeTheNodeBeforeTheStop) {
  const Step t;
  Executor e = t.executor();
  std::vector<std::string> seen;
  e.monitor("*", [&](const Monitored& m) { seen.push_back(m.name); });
  const std::atomic<bool> pause{true};
  e.run_until({.pause = &pause});
  EXPECT_EQ(seen, std::vector<std::string>{"a"});
  e.resume();
  EXPECT_EQ(seen.size(), 6u);
}

}  // namespace
}  // namespace tapedeck
