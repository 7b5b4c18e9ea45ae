// Tests fused nodes: on random programs a graph with fused nodes gives the bits of the graph without, replayed on any number of
// threads and under any budget. Eager runs, which interpret a region node by node, are the oracle.
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/fused.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/passes/pass_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tapedeck {
namespace {

using test::expect_same_run;
using testing::message_of;

Graph fused_graph(const Graph& graph) { return run_pass(pass_named("fuse"), graph, {.fuse_elements = 1}); }

std::int64_t fused_nodes(const Graph& g) {
  return std::count_if(g.nodes.begin(), g.nodes.end(), [](const Node& node) { return node.op == &ops::fused; });
}

// The operands that one replay and the eager run of another graph get.
void expect_replay_of(const Graph& graph, const Plan& plan, int threads) {
  const std::vector<Tensor> inputs = stand_ins(graph, 0, graph.n_inputs, 3),
                            state = stand_ins(graph, graph.n_inputs, graph.n_state, 7);
  Executor executor(plan, {.threads = threads});
  set_all(executor, inputs, state);
  executor.run();
  expect_equal(executor, run_eagerly(graph, inputs, state), print(plan.graph));
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
}

class FusedPrograms : public ::testing::TestWithParam<int> {};

TEST_P(FusedPrograms, KeepEveryBit) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const Graph graph = test::PassProgram(seed).make(10 + GetParam() % 50);
  const Graph fused = fused_graph(graph);
  verify(fused);
  expect_same_run(graph, fused, seed);
  EXPECT_EQ(print(parse(print(fused))), print(fused));
  if (HasFailure()) FAIL() << "seed " << seed << "\n" << print(graph) << "became\n" << print(fused);
}

TEST_P(FusedPrograms, ReplayUnderAnyBudget) {
  const Graph graph = test::RandomGraph(static_cast<std::uint64_t>(100 + GetParam()), true).make(40);
  const Graph fused = fused_graph(graph);
  PlanSearch search(fused, {}, SearchEffort::draft);
  const Plan kept = make_plan(fused);
  for (const std::int64_t budget : {kept.peak_bytes, (search.floor() + kept.peak_bytes) / 2, search.floor()}) {
    const Plan plan = make_plan(fused, {.budget = budget});
    ASSERT_TRUE(plan.feasible);
    for (int threads : {1, 2}) expect_replay_of(graph, plan, threads);
  }
  if (HasFailure()) FAIL() << "seed " << 100 + GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FusedPrograms, ::testing::Range(0, 60));

TEST(Fused, RandomProgramsHaveFusedNodes) {
  std::int64_t n = 0;
  for (int seed = 0; seed < 20; ++seed) n += fused_nodes(fused_graph(test::PassProgram(seed).make(40)));
  EXPECT_GT(n, 20);
}

// Nothing vanishes here, and the gradient of gelu could not keep %h alone any more.
TEST(Fused, LeavesAloneWhatSavesNoBytes) {
  const Graph graph = parse(R"(graph g(%x: f32[64,32], %b: f32[32], %w: f32[32,8], %dy: f32[64,32]) {
  %h: f32[64,32] = add(%x, %b)
  %y: f32[64,32] = gelu(%h) {}
  %z: f32[64,8] = matmul(%y, %w)
  %dh: f32[64,32] = gelu_grad(%h, %dy) {}
  return %z, %dh
})");
  EXPECT_EQ(fused_nodes(fused_graph(graph)), 0) << print(fused_graph(graph));
  const Graph vanishing = parse(R"(graph g(%x: f32[64,32], %b: f32[32], %w: f32[32,8]) {
  %h: f32[64,32] = add(%x, %b)
  %y: f32[64,32] = gelu(%h) {}
  %z: f32[64,8] = matmul(%y, %w)
  return %z
})");
  EXPECT_EQ(fused_nodes(fused_graph(vanishing)), 1);
}

// The floor of the same graph is not higher with fused nodes: %y is computed again from %h, which is kept.
TEST(Fused, KeepsTheFloorOfWhatIsComputedAgain) {
  const Graph graph = parse(R"(graph g(%x: f32[256,64], %b: f32[64], %v: f32[64,64]) {
  %m0: f32[256,64] = matmul(%x, %v)
  %h0: f32[256,64] = add(%m0, %b)
  %y0: f32[256,64] = gelu(%h0) {}
  %m1: f32[256,64] = matmul(%y0, %v)
  %h1: f32[256,64] = add(%m1, %b)
  %y1: f32[256,64] = gelu(%h1) {}
  %d1: f32[256,64] = gelu_grad(%h1, %y1) {}
  %yt: f32[64,256] = transpose(%y0) {axes=[1,0]}
  %w1: f32[64,64] = matmul(%yt, %d1)
  %e0: f32[256,64] = matmul(%d1, %v)
  %d0: f32[256,64] = gelu_grad(%h0, %e0) {}
  return %w1, %d0
})");
  const std::int64_t floor = PlanSearch(graph, {}, SearchEffort::draft).floor();
  EXPECT_LE(PlanSearch(fused_graph(graph), {}, SearchEffort::draft).floor(), floor);
}

// ---- layouts, on tensors of several tiles ----

void expect_fused_replay(const std::string& text) {
  const Graph graph = parse(text), fused = fused_graph(graph);
  EXPECT_EQ(fused_nodes(fused), 1) << print(fused);
  for (int threads : {1, 2}) expect_replay_of(graph, make_plan(fused), threads);
}

TEST(FusedReplay, BroadcastsOperands) {
  expect_fused_replay(R"(graph g(%x: f32[7,31,40], %row: f32[40], %column: f32[31,1], %one: f32[], %plane: f32[7,1,1]) {
  %a: f32[7,31,40] = mul(%x, %row)
  %b: f32[7,31,40] = add(%a, %column)
  %c: f32[7,31,40] = sub(%b, %one)
  %d: f32[7,31,40] = maximum(%c, %plane)
  return %d
})");
}

TEST(FusedReplay, ReadsAnyStrides) {
  expect_fused_replay(R"(graph g(%x: f32[90,70], %y: f32[70,90]) {
  %t: f32[90,70] = transpose(%y) {axes=[1,0]}
  %a: f32[90,70] = mul(%x, %t)
  %b: f32[90,70] = exp(%a)
  %c: f32[90,70] = add(%b, %t)
  return %c
})");
}

TEST(FusedReplay, ConvertsBetweenWidths) {
  expect_fused_replay(R"(graph g(%x: f32[5000], %k: i64[5000], %m: bool[5000], %d: f64[5000]) {
  %a: f64[5000] = cast(%x) {dtype=f64}
  %b: f64[5000] = mul(%a, %d)
  %c: i32[5000] = cast(%k) {dtype=i32}
  %e: f64[5000] = cast(%c) {dtype=f64}
  %f: f64[5000] = add(%b, %e)
  %g: f64[5000] = where(%m, %f, %d)
  %h: bool[5000] = less(%g, %d)
  return %h, %g
})");
}

TEST(FusedReplay, RoundsHalvesAfterEachOp) {
  for (const std::string half : {"f16", "bf16"})
    expect_fused_replay("graph g(%x: " + half + "[3000], %y: " + half + "[3000]) {\n  %a: " + half +
                        "[3000] = mul(%x, %y)\n  %b: " + half + "[3000] = add(%a, %x)\n  %c: " + half +
                        "[3000] = tanh(%b)\n  return %c\n}\n");
}

// The result takes over the bytes of %t, which the last node reads after the first result is known.
TEST(FusedReplay, WritesOverOperandsThatAreReadAgain) {
  const Graph graph = parse(R"(graph g(%x: f32[64,64], %w: f32[64,64]) {
  %t: f32[64,64] = matmul(%x, %w)
  %e: f32[64,64] = exp(%t)
  %a: f32[64,64] = neg(%e)
  %b: f32[64,64] = mul(%a, %t)
  %s: f32[] = sum(%a) {axes=[0,1]}
  %u: f32[] = sum(%b) {axes=[0,1]}
  return %s, %u
})");
  const Graph fused = fused_graph(graph);
  ASSERT_EQ(fused_nodes(fused), 1) << print(fused);
  const Plan plan = make_plan(fused);
  EXPECT_LT(plan.peak_bytes, 5 * 4 * 64 * 64) << "%x, %w, and one result in the bytes of %t";
  for (int threads : {1, 2}) expect_replay_of(graph, plan, threads);
}

TEST(FusedReplay, WritesIntoAJoin) {
  expect_fused_replay(R"(graph g(%x: f32[40,30], %y: f32[40,10]) {
  %a: f32[40,30] = exp(%x)
  %b: f32[40,30] = neg(%a)
  %z: f32[40,10] = reshape(%y) {shape=[40,10]}
  %c: f32[40,40] = concat(%b, %z) {axis=1}
  return %c
})");
}

TEST(FusedReplay, ReportsFaultsOfItsKernels) {
  const Graph fused = fused_graph(parse(R"(graph g(%x: i32[300], %y: i32[300]) {
  %a: i32[300] = sub(%x, %x)
  %b: i32[300] = div(%y, %a)
  return %b
})"));
  ASSERT_EQ(fused_nodes(fused), 1);
  Executor executor(make_plan(fused));
  set_all(executor, stand_ins(fused, 0, 2, 3), {});
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { executor.run(); }), "[fused] integer division by zero");
}

// ---- gradients ----

TEST(Fused, TheGradientIsThatOfTheNodesInside) {
  const Graph graph = parse(R"(graph g(%x: f32[6,5], %w: f32[5]) {
  %a: f32[6,5] = mul(%x, %w)
  %b: f32[6,5] = tanh(%a)
  %c: f32[6,5] = mul(%b, %a)
  return %c
})");
  const Graph fused = fused_graph(graph);
  ASSERT_EQ(fused_nodes(fused), 1);
  Graph gradients[2];
  for (int k = 0; k < 2; ++k) {
    const Graph& g = k == 0 ? graph : fused;
    GraphGradient made = gradient(g, g.outputs, std::vector<ValueId>{0, 1});
    made.graph.outputs = made.gradients;
    made.graph.output_names.assign(2, Name());
    gradients[k] = std::move(made.graph);
  }
  test::expect_near_run(gradients[0], gradients[1], 1, 1e-6);
}

// ---- regions that are refused ----

std::string refusal(const std::string& region, const std::string& result) {
  return testing::message_or_none<Error>([&] {
    parse("graph g(%x: f32[4,3], %y: f32[3]) {\n  %r: " + result + " = fused(%x, %y) (%p: f32[4,3], %q: f32[3]) {\n" + region +
          "  }\n  return %r\n}\n");
  });
}

TEST(Fused, RefusesOtherRegions) {
  EXPECT_EQ(refusal("    %a: f32[4,3] = add(%p, %q)\n    return %a\n", "f32[4,3]"), "");
  EXPECT_MENTIONS(refusal("    %a: f32[4] = sum(%p) {axes=[1]}\n    return %a\n", "f32[4]"), "cannot hold");
  EXPECT_MENTIONS(refusal("    %a: f32[3] = exp(%q)\n    %b: f32[4,3] = add(%p, %a)\n    return %b\n", "f32[4,3]"),
                  "another shape");
  EXPECT_MENTIONS(refusal("    %a: f32[4,3] = add(%p, %q)\n    return %p\n", "f32[4,3]"), "returns what it was given");
  EXPECT_MENTIONS(refusal("    return %p\n", "f32[4,3]"), "holds 0 nodes");
}

}  // namespace
}  // namespace tapedeck
