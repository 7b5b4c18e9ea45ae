// Tests monitors: callbacks that see the results and operands of nodes during a run. They must see the values of an eager
// run, and must not change anything.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/monitors.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace tapedeck {
namespace {

using testing::message_of;
using Names = std::vector<std::string>;

TEST(ExecutorMonitor, PatternsAreGlobs) {
  using replay::matches;
  EXPECT_TRUE(matches("", "") && matches("*", "") && matches("*", "abc") && matches("a?c", "abc") && matches("a*c", "ac") &&
              matches("a*c", "abbc"));
  EXPECT_TRUE(matches("fc*.weight", "fc1.weight") && matches("*a*b*", "xxaxxbxx") && matches("abc", "abc") &&
              matches("*ab", "aab"));
  EXPECT_FALSE(matches("", "a") || matches("a?c", "ac") || matches("a*c", "abd") || matches("abc", "ab") ||
               matches("ab", "abc") || matches("*ab", "aba"));
}

// A pooling layer and a dense layer with relu, from MXNet's test. MXNet names operands after variables or "node_input0".
// Here every value has one name, that of its maker, so an operand of one node is the output of another.
TEST(ExecutorMonitor, T107_OpHookOutputNames) {
  const Graph g = parse(R"(graph net(%data: f32[1,1,4,4]) state(%dense0_weight: f32[4,2], %dense0_bias: f32[2]) {
    %pool0_output: f32[1,1,2,2] = max_pool2d(%data) {window=[2,2], stride=[2,2]}  [path="pool0"]
    %flat: f32[1,4] = reshape(%pool0_output) {shape=[1,4]}
    %dense0_product: f32[1,2] = matmul(%flat, %dense0_weight)                      [path="dense0"]
    %dense0_output: f32[1,2] = add(%dense0_product, %dense0_bias)                  [path="dense0"]
    %relu0_output: f32[1,2] = relu(%dense0_output)                                 [path="dense0.relu0"]
    return %relu0_output
  })");
  const std::vector<Tensor> inputs = stand_ins(g, 0, 1, 3), state = stand_ins(g, 1, 2, 3);
  const EagerResult eager = run_eagerly(g, inputs, state);
  for (int threads : {1, 2}) {
    Executor e(make_plan(g), {.threads = threads});
    set_all(e, inputs, state);
    Names seen;
    const auto note = [&](const Monitored& m) { seen.push_back((m.operand ? "<" : ">") + m.name); };
    const std::int32_t pool = e.monitor("pool0", note, {.operands = true});
    e.run();
    EXPECT_EQ(seen, (Names{"<data", ">pool0_output"}));
    e.remove_monitor(pool);
    EXPECT_THROW(e.remove_monitor(pool), UsageError);

    seen.clear();
    const std::int32_t dense = e.monitor("dense0*", note, {.operands = true});
    e.run();
    EXPECT_EQ(seen, (Names{"<flat", "<dense0_weight", ">dense0_product", "<dense0_product", "<dense0_bias", ">dense0_output",
                           "<dense0_output", ">relu0_output"}));
    e.remove_monitor(dense);

    seen.clear();
    e.monitor("*_output", note);
    e.run();
    e.run();
    EXPECT_EQ(seen,
              (Names{">pool0_output", ">dense0_output", ">relu0_output", ">pool0_output", ">dense0_output", ">relu0_output"}))
        << "in every run";
    expect_equal(e, eager, "monitored");
  }
}

// A monitor as a debug tap on (.5 + .75) * 1.75 + 2.5.
TEST(ExecutorMonitor, T47_DebugInterceptOfAReplay) {
  const Graph g = parse(R"(graph tap(%x: f32[]) {
    %c: f32[] = constant() {value=[0.75]}
    %a: f32[] = add(%x, %c)
    %k: f32[] = constant() {value=[1.75]}
    %m: f32[] = mul(%a, %k)
    %b: f32[] = constant() {value=[2.5]}
    %y: f32[] = add(%m, %b)
    return %y
  })");
  Executor e(make_plan(g));
  e.set_input("x", scalar(0.5));
  std::vector<double> seen;
  e.monitor("a", [&](const Monitored& m) { seen.push_back(m.value.item()); });
  e.run();
  EXPECT_EQ(seen, std::vector<double>{1.25});
  EXPECT_EQ(e.outputs()[0].item(), 4.6875);
}

// Some values are computed in place, some are windows or constants. The monitor must see each value as it was when its node
// ran.
TEST(ExecutorMonitor, SeesEveryValueAsItWas) {
  const Graph g = parse(R"(graph all(%x: f32[4,3]) state(%s: f32[3,4]) {
    %a: f32[4,3] = exp(%x)
    %b: f32[4,3] = neg(%a)
    %t: f32[3,4] = transpose(%b) {axes=[1,0]}
    %c: f32[3,4] = constant() {value=[1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0,11.0,12.0]}
    %d: f32[3,4] = mul(%t, %c)
    %s2: f32[3,4] = add(%s, %d)
    %r: f32[] = sum(%s2) {axes=[0,1]}
    return %r
    update %s = %s2
  })");
  Graph all = g;  // makes every value an output, to get all eager values
  all.outputs.clear();
  for (ValueId v = 0; v < g.value_count(); ++v) all.outputs.push_back(v);
  all.output_names.assign(all.outputs.size(), {});
  const std::vector<Tensor> inputs = stand_ins(g, 0, 1, 3), state = stand_ins(g, 1, 1, 3);
  const std::vector<Tensor> wanted = run_eagerly(all, inputs, state).outputs;
  for (int threads : {1, 4}) {
    const Plan plan = make_plan(g, {.segment_us = 0.001});
    Executor e(plan, {.threads = threads});
    set_all(e, inputs, state);
    int results = 0, operands = 0;
    e.monitor("*",
              [&](const Monitored& m) {
                for (ValueId v = 0; v < g.value_count(); ++v) {
                  if (g.value_name(v) != m.name) continue;
                  EXPECT_TRUE(bit_equal(m.value, wanted[v])) << m.name << (m.operand ? " read" : " made");
                }
                ++(m.operand ? operands : results);
              },
              {.operands = true});
    e.run();
    EXPECT_EQ(results, 7);
    EXPECT_EQ(operands, 8);
    expect_equal(e, run_eagerly(g, inputs, state), "monitored");
    EXPECT_EQ(e.observed_peak_bytes(), plan.peak_bytes) << "copies are not the replay's";
  }
}

TEST(ExecutorMonitor, SeesOperandsByTheirName) {
  Executor e(
      make_plan(parse("graph f(%x: f32[2], %y: f32[2]) { %a: f32[2] = add(%x, %y) %b: f32[2] = mul(%a, %y) return %b }")));
  e.set_input(0, tensor({1, 2}));
  e.set_input(1, tensor({3, 4}));
  std::vector<NodeId> readers;
  e.monitor("y",
            [&](const Monitored& m) {
              EXPECT_EQ(m.value.to_vector<float>(), (std::vector<float>{3, 4}));
              readers.push_back(m.node);
            },
            {.operands = true});
  e.run();
  EXPECT_EQ(readers, (std::vector<NodeId>{0, 1}));
  EXPECT_MENTIONS(message_of<UsageError>([&] { e.monitor("z*", [](const Monitored&) {}); }), "'z*'");
  EXPECT_THROW(e.monitor("a", nullptr), UsageError);
}

TEST(ExecutorMonitor, WhatItThrowsSurfacesOnce) {
  const Graph g = parse("graph f(%x: f32[2]) { %a: f32[2] = neg(%x) %b: f32[2] = exp(%a) return %b }");
  for (int threads : {1, 2}) {
    Executor e(make_plan(g, {.segment_us = 0.001}), {.threads = threads});
    e.set_input(0, tensor({1, 2}));
    bool fail = true;
    e.monitor("a", [&](const Monitored&) {
      if (fail) throw TypeError("not what I wanted");
    });
    bool nested = false;
    try {
      e.run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const ExecutionError& error) {
      EXPECT_MENTIONS(std::string(error.what()), "[neg] not what I wanted, at %a: f32[2] = neg(%x)");
      try {
        std::rethrow_if_nested(error);
      } catch (const TypeError&) {
        nested = true;
      }
    }
    EXPECT_TRUE(nested) << "of the type it was thrown as";
    EXPECT_THROW(e.outputs(), ExecutionError);
    fail = false;
    e.run();
    expect_equal(e, run_eagerly(g, {tensor({1, 2})}, {}), "again");
  }
}

TEST(ExecutorMonitor, MustNotCallItsExecutor) {
  Executor e(make_plan(parse("graph f(%x: f32[2]) { %a: f32[2] = neg(%x) return %a }")));
  e.set_input(0, tensor({1, 2}));
  e.monitor("a", [&](const Monitored&) { e.outputs(); });
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { e.run(); }), "in use");
}

// Monitors also see a step that runs in parts.
TEST(ExecutorMonitor, SeesPartsOfAStep) {
  Executor e(
      make_plan(parse("graph f(%x: f32[2]) { %a: f32[2] = neg(%x) %b: f32[2] = exp(%a) %c: f32[2] = tanh(%b) return %c }")));
  e.set_input(0, tensor({1, 2}));
  Names seen;
  e.monitor("*", [&](const Monitored& m) { seen.push_back(m.name); });
  e.step(2);
  EXPECT_EQ(seen, (Names{"a", "b"}));
  e.resume();
  EXPECT_EQ(seen, (Names{"a", "b", "c"}));
}

}  // namespace
}  // namespace tapedeck
