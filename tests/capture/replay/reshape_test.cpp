// Tests executors at other sizes: the new plan keeps addresses near those of the old plan, and the executors of a family
// share memory, state and results.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

// Forty layers of many sizes over state; backward reads their results. One value in the middle grows with the batch.
Graph layers_beside_a_batch(int batch) {
  const auto type = [](int i) { return fmt::format("f32[{}]", 16 * (10 + i * 37 % 23)); };
  std::string state, up, down, updates;
  for (int i = 1; i <= 40; ++i) {
    state += fmt::format("{}%w{}: {}", i > 1 ? ", " : "", i, type(i));
    up += fmt::format("  %a{0}: {1} = exp(%w{0})\n  %s{0}: f32[] = sum(%a{0}) {{axes=[0]}}\n", i, type(i));
    if (i == 20) up += fmt::format("  %b: f32[{}] = tanh(%x)\n", batch);
  }
  for (int i = 40; i >= 1; --i)
    down += fmt::format(
        "  %m{0}: {1} = mul(%a{0}, %s{2})\n  %n{0}: f32[] = sum(%m{0}) {{axes=[0]}}\n  %t{0}: f32[] = add(%t{3}, %n{0})\n", i,
        type(i), 41 - i, i + 1);
  return parse(fmt::format("graph f(%x: f32[{}]) state({}) {{\n{}  %t41: f32[] = sum(%b) {{axes=[0]}}\n{}  return %t1\n}}",
                           batch, state, up, down));
}

TEST(ExecutorReshape, WhatHasItsSizeStillStaysWhereItWas) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  options.find_floor = false;
  const Graph before = layers_beside_a_batch(64), after = layers_beside_a_batch(500);
  Executor e(make_plan(before, options));
  const Executor wider = e.reshape({{"x", {DType::f32, {500}}}}, {.allow_up_sizing = true});
  const Plan alone = make_plan(after, options);
  const auto kept = [&](const Plan& now) {
    int same = 0, all = 0;
    for (ValueId v = 0; v < now.graph.value_count(); ++v) {
      const std::string name = now.graph.value_name(v);
      if (now.values[v].where != Where::arena || (name[0] != 'a' && name[0] != 'm')) continue;
      for (ValueId w = 0; w < e.plan().graph.value_count(); ++w)
        if (e.plan().graph.value_name(w) == name) same += now.values[v].offset == e.plan().values[w].offset, ++all;
    }
    EXPECT_EQ(all, 80);
    return same;
  };
  EXPECT_LT(kept(alone), 60) << "the change is too small to show anything";
  EXPECT_GE(kept(wider.plan()), 70);
}

// A plan that is too small for the new sizes is made anew. At level all its two exp would become one.
TEST(ExecutorReshape, ANewPlanHasTheLevelOfTheOld) {
  const char* const twice = "graph f(%x: f32[4]) {\n%a: f32[4] = exp(%x)\n%b: f32[4] = exp(%x)\nreturn %a, %b\n}\n";
  for (const OptimizationLevel level : {OptimizationLevel::none, OptimizationLevel::all}) {
    Executor small(make_plan(parse(twice), {.level = level}));
    Executor large = small.reshape({{"x", {DType::f32, {400}}}}, {.allow_up_sizing = true});
    EXPECT_EQ(large.plan().level, level);
    EXPECT_EQ(large.plan().nodes, small.plan().nodes);
    large.set_input("x", zeros({400}));
    large.run();
    EXPECT_TRUE(bit_equal(large.outputs()[1], ones({400})));
  }
}

// ---- memory, state and results that a family shares ----

TEST(ExecutorReshape, AFamilyByTensorMovesTogether) {
  const char* const reads = "graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}";
  Executor a(make_plan(parse(reads)), {.state = StateSharing::by_tensor});
  const Tensor first = ones({4}), second = full({4}, 50.0);
  a.bind_state("w", first);
  a.set_input("x", ones({4}));
  a.run();
  Executor b = a.reshape({{"x", {DType::f32, {4}}}});
  a.bind_state("w", second);
  EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4}))) << "saved before the state went elsewhere";
  b.run();
  EXPECT_TRUE(bit_equal(b.outputs()[0], full({4}, 51.0)));
  b.set_state("w", full({4}, 7.0));
  a.run();
  EXPECT_TRUE(bit_equal(a.outputs()[0], full({4}, 8.0)));
  EXPECT_TRUE(bit_equal(first, ones({4})));
}

TEST(ExecutorReshape, AValueInASharedResultIsGoneOnceASiblingHasRun) {
  Executor a(make_plan(parse("graph f(%x: f32[4]) {\n  %y: f32[4] = add(%x, %x)\n  return %y\n}")));
  Executor b = a.reshape({{"x", {DType::f32, {2}}}});
  a.set_input("x", ones({4}));
  a.run();
  EXPECT_TRUE(bit_equal(a.value("y"), full({4}, 2.0)));
  b.set_input("x", full({2}, 7.0));
  b.run();
  const std::string text = message_of<ExecutionError>([&] { a.value("y"); });
  EXPECT_TRUE(mentions(text, "%y of 'f' is not there any more: 'f', which shares its memory, has run since")) << text;
  EXPECT_TRUE(bit_equal(b.value("y"), full({2}, 14.0)));
}

// A step that fails half way has written some of the shared results.
TEST(ExecutorReshape, ASiblingsFailedStepTakesTheResultsAlong) {
  Executor a(make_plan(parse(R"(graph f(%x: f32[4], %i: i32[2]) {
    %y: f32[4] = add(%x, %x)
    %e: f32[2] = gather(%y, %i) {axis=0}
    return %y, %e
  })")));
  const auto indices = [](int second) { return from_vector(std::vector<std::int32_t>{0, second}, {2}); };
  a.set_input("x", ones({4}));
  a.set_input("i", indices(1));
  a.run();
  Executor b = a.reshape({{"x", {DType::f32, {4}}}});
  b.set_input("x", full({4}, 9.0));
  b.set_input("i", indices(17));
  EXPECT_THROW(b.run(), ExecutionError);
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { a.outputs(); }), "began and has not come to its end"));
  EXPECT_THROW(a.value("y"), ExecutionError);
  b.set_input("i", indices(1));
  a.run();
  EXPECT_TRUE(bit_equal(a.outputs()[0], full({4}, 18.0)));
}

// ---- size zero ----

// Joins of parts of which some or all are empty.
TEST(ExecutorReshape, ToSizeZeroAndBack) {
  const auto graph = [](int rows, int more) {
    return parse(fmt::format(R"(graph f(%x: f32[{0},6], %z: f32[{1},6]) {{
      %e: f32[{0},6] = exp(%x)
      %q: f32[{1},6] = exp(%z)
      %h: f32[{2},6] = concat(%q, %e, %x) {{axis=0}}
      %t: f32[{2},6] = relu(%h)
      %s: f32[6] = sum(%t) {{axes=[0]}}
      return %s
    }})",
                             rows, more, 2 * rows + more));
  };
  for (const Ordering ordering : {Ordering::recorded, Ordering::automatic}) {
    Executor base(make_plan(graph(4, 3), {.ordering = ordering}));
    for (const int rows : {0, 4, 2, 0})
      for (const int more : {3, 0, 1}) {
        SCOPED_TRACE(fmt::format("{} and {} rows", rows, more));
        Executor other = base.reshape({{"x", {DType::f32, {rows, 6}}}, {"z", {DType::f32, {more, 6}}}});
        const std::vector<Tensor> inputs = {full({rows, 6}, 0.5), full({more, 6}, 0.25)};
        set_all(other, inputs, {});
        other.run();
        expect_equal(other, run_eagerly(graph(rows, more), inputs, {}), "reshaped");
      }
  }
}

}  // namespace
}  // namespace tapedeck
