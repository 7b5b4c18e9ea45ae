// Tests monitors that name the inputs of nodes: their names, and that they see what the node reads, also where the node then
// overwrites it. The oracle is run_eagerly().
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/monitor_inputs.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tapedeck {
namespace {

using Names = std::vector<std::string>;

// A pooling layer and a dense layer with relu, from MXNet's test. Inputs and state keep their names, as MXNet's variables do.
TEST(MonitorInputs, T107_OpHookInputNames) {
  const Graph g = parse(R"(graph net(%data: f32[1,1,4,4]) state(%dense0_weight: f32[4,2], %dense0_bias: f32[2]) {
    %pool0_output: f32[1,1,2,2] = max_pool2d(%data) {window=[2,2], stride=[2,2]}  [path="pool0"]
    %flat: f32[1,4] = reshape(%pool0_output) {shape=[1,4]}
    %dense0_output: f32[1,2] = linear(%flat, %dense0_weight, %dense0_bias)         [path="dense0"]
    %relu0_output: f32[1,2] = relu(%dense0_output)                                 [path="relu0"]
    return %relu0_output
  })");
  const std::vector<Tensor> inputs = stand_ins(g, 0, 1, 3), state = stand_ins(g, 1, 2, 3);
  const EagerResult eager = run_eagerly(g, inputs, state);
  for (int threads : {1, 2}) {
    Executor e(make_plan(g), {.threads = threads});
    set_all(e, inputs, state);
    Names seen;
    const MonitorFunction note =
        with_input_names([&](const Monitored& m) { seen.push_back((m.operand ? "<" : ">") + m.name); });
    const auto names_of = [&](const std::string& pattern, const MonitorOptions& options) {
      seen.clear();
      const std::int32_t id = e.monitor(pattern, note, options);
      e.run();
      e.remove_monitor(id);
      return seen;
    };
    EXPECT_EQ(names_of("pool0", {.operands = true}), (Names{"<data", ">pool0_output"}));
    EXPECT_EQ(names_of("dense0", {.operands = true}),
              (Names{"<dense0_output.input0", "<dense0_weight", "<dense0_bias", ">dense0_output"}));
    EXPECT_EQ(names_of("relu0", {.operands = true}), (Names{"<relu0_output.input0", ">relu0_output"}));
    EXPECT_EQ(names_of("relu0", {}), (Names{">relu0_output"})) << "only results, without the option";
    expect_equal(e, eager, "monitored");
  }
}

// %b takes over the bytes of %a, and %s2 those of the state.
TEST(MonitorInputs, SeeWhatANodeOverwrites) {
  const Graph g = parse(R"(graph f(%x: f32[64]) state(%s: f32[64]) {
    %a: f32[64] = exp(%x)
    %b: f32[64] = neg(%a)
    %s2: f32[64] = add(%s, %b)
    %r: f32[] = sum(%s2) {axes=[0]}
    return %r
    update %s = %s2
  })");
  const Plan plan = make_plan(g);
  ASSERT_EQ(plan.values[3].reason, Reason::in_place) << "the test is about a write in place";
  Graph all = g;  // every result of a node is an output
  all.outputs = {2, 3, 4};
  all.output_names.assign(3, {});
  const std::vector<Tensor> x = stand_ins(g, 0, 1, 5), s = stand_ins(g, 1, 1, 6);
  const std::vector<Tensor> results = run_eagerly(all, x, s).outputs;
  const std::map<std::string, Tensor> wanted{
      {"x", x[0]}, {"s", s[0]}, {"b.input0", results[0]}, {"s2.input1", results[1]}, {"r.input0", results[2]}};
  Executor e(plan);
  set_all(e, x, s);
  std::map<std::string, Tensor> seen;
  e.monitor("*", with_input_names([&](const Monitored& m) {
              if (m.operand) seen.emplace(m.name, m.value);
            }),
            {.operands = true});
  e.run();
  ASSERT_EQ(seen.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    ASSERT_EQ(seen.count(name), 1u) << name;
    EXPECT_TRUE(bit_equal(seen.at(name), value)) << name;
  }
}

TEST(MonitorInputs, EveryOperandHasAName) {
  const Graph g = parse(R"(graph f(%x: f32[2]) {
    %a: f32[2] = exp(%x)
    %b: f32[2] = mul(%a, %a)
    %c: f32[2] = add(%x, %x)
    %d: f32[2] = sub(%b, %c)
    return %d
  })");
  EXPECT_EQ(input_name(g, 3, 1), "d.input1");
  EXPECT_EQ(input_name(g, 0, 0), "x");
  Executor e(make_plan(g), {.threads = 1});
  e.set_input(0, tensor({1, 2}));
  std::map<NodeId, Names> seen;
  e.monitor("*", with_input_names([&](const Monitored& m) {
              if (m.operand) seen[m.node].push_back(m.name);
            }),
            {.operands = true});
  e.run();
  std::vector<Names> all;
  for (const auto& entry : seen) all.push_back(entry.second);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<Names>{{"b.input0", "b.input1"}, {"d.input0", "d.input1"}, {"x"}, {"x"}}));
}

TEST(MonitorInputs, OfACapturedStep) {
  CapturedStep step = capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{tanh(exp(in[0]))}; });
  Names seen;
  step.monitor("tanh", with_input_names([&](const Monitored& m) { seen.push_back(m.name); }), {.operands = true});
  for (int i = 0; i < 3; ++i) step({tensor({1, 2})});
  EXPECT_EQ(seen, (Names{"tanh.input0", "tanh"})) << "in the one call that replayed";
}

TEST(MonitorInputs, NeedAFunction) {
  EXPECT_MENTIONS(testing::message_of<UsageError>([] { with_input_names(nullptr); }), "there is no function to call");
}

}  // namespace
}  // namespace tapedeck
