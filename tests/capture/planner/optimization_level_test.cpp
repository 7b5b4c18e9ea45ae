// Tests the levels of optimization (C9, T81): every level gives the bits of eager code, a higher level plans fewer nodes, and
// the lowest level plans the nodes that were recorded.
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/plan/level_names.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/step/dropout_net.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Level = OptimizationLevel;
using Tensors = std::vector<Tensor>;
constexpr Level kLevels[] = {Level::none, Level::cleanups, Level::all, Level::fused};

std::string ops_of(const Graph& g) {
  std::string ops;
  for (const Node& node : g.nodes) ops += std::string(node.op->name) + " ";
  return ops;
}

// The ops of the plan in their recorded order.
std::string planned_ops(const Graph& g, Level level) {
  return ops_of(make_plan(g, {.strategy = Strategy::none, .level = level, .ordering = Ordering::recorded}).graph);
}

// A copy, a dead node, a view of a view, an identity, a known value and a common subexpression.
const char* const kProgram = R"(
graph g(%x: f32[4,6], %y: f32[24]) {
  %one: f32[] = full() {shape=[], dtype=f32, value=1.0}
  %minus: f32[] = neg(%one)
  %a: f32[4,6] = copy(%x)
  %b: f32[24] = reshape(%a) {shape=[24]}
  %c: f32[2,12] = reshape(%b) {shape=[2,12]}
  %d: f32[2,12] = exp(%c)
  %e: f32[2,12] = exp(%c)
  %f: f32[2,12] = mul(%d, %e)
  %g: f32[2,12] = mul(%f, %one)
  %h: f32[2,12] = mul(%g, %minus)
  %i: f32[24] = tanh(%y)
  return %h
}
)";

TEST(OptimizationLevel, EachLevelLeavesFewerNodes) {
  const Graph g = parse(kProgram);
  EXPECT_EQ(planned_ops(g, Level::none), ops_of(g)) << "nothing is left out, moved or added";
  EXPECT_EQ(planned_ops(g, Level::cleanups), "full neg reshape exp exp mul mul mul ");
  const Plan all = make_plan(g), cleaned = make_plan(g, {.level = Level::cleanups});
  EXPECT_LT(all.nodes, cleaned.nodes);
  for (Level level : kLevels) check_replay(g, {.level = level});
}

TEST(OptimizationLevel, TheDefaultIsAll) {
  const Graph g = parse(kProgram);
  const Plan usual = make_plan(g), all = make_plan(g, {.level = Level::all});
  EXPECT_EQ(print(usual.graph), print(all.graph));
  EXPECT_EQ(usual.peak_bytes, all.peak_bytes);
  EXPECT_EQ(usual.nodes, all.nodes);
}

TEST(OptimizationLevel, ThePlanSaysItsLevel) {
  for (Level level : kLevels) EXPECT_EQ(make_plan(parse(kProgram), {.level = level}).level, level);
  EXPECT_STREQ(level_name(Level::none), "none");
  EXPECT_STREQ(level_name(Level::cleanups), "cleanups");
  EXPECT_STREQ(level_name(Level::all), "all");
  EXPECT_STREQ(level_name(static_cast<Level>(4)), "unknown");
}

TEST(OptimizationLevel, ALevelThatDoesNotExist) {
  EXPECT_THROW(make_plan(parse(kProgram), {.level = static_cast<Level>(4)}), UsageError);
}

TEST(OptimizationLevel, PassesThatOnlyLeaveOut) {
  std::set<std::string> cleanups;
  for (const Pass* pass : all_passes()) {
    EXPECT_NE(pass->level, Level::none) << pass->name << ": nothing but passes with `always` runs at level none";
    if (pass->level == Level::cleanups) cleanups.insert(pass->name);
  }
  EXPECT_EQ(cleanups, (std::set<std::string>{"dead_code", "drop_copies", "fold_views", "loop_results"}));
  // No op comes into the example of such a pass.
  for (const std::string& name : cleanups) {
    const Graph before = parse(pass_named(name).before), after = run_pass(pass_named(name), before);
    for (const Node& node : after.nodes) EXPECT_NE(ops_of(before).find(node.op->name), std::string::npos) << name;
  }
}

TEST(OptimizationLevel, ARunnerLeavesPassesOfHigherLevelsOut) {
  const char* const twice = "graph g(%x: f32[4]) {\n%a: f32[4] = exp(%x)\n%b: f32[4] = exp(%x)\nreturn %a, %b\n}\n";
  PassRunner cleanups({.level = Level::cleanups});
  EXPECT_EQ(cleanups.run("cse", parse(twice)).node_count(), 2);
  EXPECT_TRUE(cleanups.records().empty());
  EXPECT_THROW(cleanups.run("csee", parse(twice)), UsageError);
  EXPECT_EQ(PassRunner({.level = Level::all}).run("cse", parse(twice)).node_count(), 1);
  // An update needs its copy at every level.
  const char* const swap = "graph g() state(%a: f32[4], %b: f32[4]) {\n  return\n  update %a = %b, %b = %a\n}\n";
  EXPECT_GT(PassRunner({.level = Level::none}).run("insert_copies", parse(swap)).node_count(), 0);
}

class LevelsOnRandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(LevelsOnRandomGraphs, HaveTheBitsOfEagerCode) {
  const Graph g = test::RandomGraph(static_cast<std::uint64_t>(4000 + GetParam())).make(30);
  for (Level level : kLevels) {
    SCOPED_TRACE(static_cast<int>(level));
    check_replay(g, {.level = level}, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LevelsOnRandomGraphs, ::testing::Range(0, 12));

// ---- captured steps ----

struct Training {
  Tensors results;  // the losses, then the parameters
  std::int64_t nodes = 0;
};

// Trains a net with dropout, eagerly if `level` is null.
Training train(const Level* level) {
  manual_seed(5);
  testing::DropoutNet net;
  AdamW optimizer(net.parameters(), {.lr = 1e-2});
  const StepFunction run = [&](const Tensors& in) -> Tensors {
    const Tensor loss = mean(square(net(in[0]) - in[1]));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  };
  CapturedStepOptions options;
  if (level) options.plan.level = *level;
  CapturedStep step = capture(run, options);
  Training training;
  for (int i = 0; i < 6; ++i) {
    const Tensors in = {full({5, 3}, 0.25 * i - 1), full({5, 2}, 0.5)};
    training.results.push_back((level ? step(in) : run(in))[0].detach());
  }
  for (const Tensor& p : net.parameters()) training.results.push_back(copy(p.detach()));
  if (level) training.nodes = step.plan()->nodes;
  return training;
}

TEST(OptimizationLevel, ATrainingStepHasTheSameBits) {
  const Training eager = train(nullptr);
  std::vector<std::int64_t> nodes;
  for (Level level : kLevels) {
    const Training captured = train(&level);
    nodes.push_back(captured.nodes);
    ASSERT_EQ(captured.results.size(), eager.results.size());
    for (std::size_t i = 0; i < eager.results.size(); ++i)
      EXPECT_TRUE(bit_equal(captured.results[i], eager.results[i])) << static_cast<int>(level) << ", result " << i;
  }
  EXPECT_GT(nodes[0], nodes[1]);
  EXPECT_GT(nodes[1], nodes[2]);
}

// Elsewhere a level turns y / y at 0 from NaN into 1, and log(exp(x)) into x. Here no level does.
TEST(OptimizationLevel, T81_NoLevelChangesAValue) {
  for (Level level : kLevels) {
    CapturedStepOptions options;
    options.plan.level = level;
    CapturedStep step = capture(
        [](const Tensors& in) -> Tensors {
          const Tensor& y = in[0];
          return {y / y, log(exp(y)), log(exp(y) + exp(y * 0))};
        },
        options);
    for (int i = 0; i < 3; ++i) {
      const Tensors out = step({tensor({0, 1e4f})});
      EXPECT_TRUE(std::isnan(out[0].to_vector<float>()[0]));
      EXPECT_EQ(out[0].to_vector<float>()[1], 1);
      EXPECT_EQ(out[1].to_vector<float>()[0], 0);
      EXPECT_TRUE(std::isinf(out[1].to_vector<float>()[1]));
      EXPECT_TRUE(std::isinf(out[2].to_vector<float>()[1]));
    }
    EXPECT_EQ(step.replays(), 1);
    EXPECT_NE(ops_of(step.plan()->graph).find("log"), std::string::npos);
  }
}

// One plan serves every size at every level, also where passes have rewritten the graph.
TEST(OptimizationLevel, NamedDimensions) {
  for (Level level : kLevels) {
    CapturedStepOptions options;
    options.plan.level = level;
    options.input_names = {"x"};
    options.dims.ranges = {{"b", 1, 8}};
    options.dims.inputs = {{"x", {"b", ""}}};
    const auto f = [](const Tensor& x) { return exp(copy(x)) * exp(x) * (ones({100}) + 1); };
    CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {f(in[0])}; }, options);
    for (std::int64_t n : {4, 8, 5, 2, 8}) {
      const Tensor x = full({n, 100}, 0.5);
      EXPECT_TRUE(bit_equal(step({x})[0], f(x))) << static_cast<int>(level) << " at " << n;
    }
    EXPECT_EQ(step.replays(), 3);
    EXPECT_NE(step.explain().find("serves every size"), std::string::npos) << step.explain();
  }
}

}  // namespace
}  // namespace tapedeck
