// Cases of ../shared/SEEDS.md about passes and graph editing. Each test bears the number of its case. The oracles are
// numbers by hand and eager runs.
#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/capture/analysis/reach.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/partition.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/passes/pass_graphs.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck {
namespace {

int count(const Graph& g, const char* op) {
  int n = 0;
  for (const Node& node : g.nodes) n += node.op->name == std::string(op);
  return n;
}

Graph with_fast_math(const Graph& graph) {
  PassOptions options;
  options.fast_math = true;
  PassRunner runner(options);
  return simplify(graph, &runner);
}

Graph without_fast_math(const Graph& graph) {
  PassRunner runner;
  return simplify(graph, &runner);
}

double run_scalar(const Graph& graph, std::vector<double> inputs) {
  std::vector<Tensor> given;
  for (double x : inputs) given.push_back(scalar(x));
  return run_eagerly(graph, given, {}).outputs[0].item();
}

TEST(ConformancePasses, T48_SquareOfASumHasOneAddition) {
  const Graph graph = parse(
      "graph g(%x: f32[], %y: f32[]) {\n %a: f32[] = add(%x, %y)\n %b: f32[] = add(%x, %y)\n %c: f32[] = mul(%a, %b)\n return "
      "%c\n}\n");
  const Graph simple = without_fast_math(graph);
  EXPECT_EQ(count(simple, "add"), 1);
  EXPECT_EQ(simple.node_count(), 2);
  EXPECT_EQ(run_scalar(simple, {10, 8}), 324);
}

// A graph whose only output is the gradient of `loss` for the first input.
Graph gradient_for_logits(const Graph& graph) {
  const ValueId target[] = {graph.outputs[0]}, wrt[] = {0};
  GraphGradient result = gradient(graph, target, wrt);
  result.graph.outputs = {result.gradients[0]};
  result.graph.output_names.resize(1);
  return dead_code(result.graph);
}

TEST(ConformancePasses, T49_FusedSoftmaxCrossEntropyHasTheSameGradient) {
  const Graph separate = parse(
      "graph g(%x: f32[8,10], %y: i64[8]) {\n %p: f32[8,10] = softmax(%x) {axis=1}\n %l: f32[8,10] = log(%p)\n"
      " %e: f32[] = nll_loss(%l, %y)\n return %e\n}\n");
  const Graph fused = with_fast_math(separate);
  ASSERT_EQ(fused.node_count(), 1) << print(fused);
  EXPECT_EQ(count(fused, "cross_entropy"), 1);
  Tensor labels = empty({DType::i64, {8}});
  for (int i = 0; i < 8; ++i) static_cast<std::int64_t*>(labels.mutable_data())[i] = (i * 7) % 10;
  const Tensor logits = mul(default_value({DType::f32, {8, 10}}, 3, "x"), 4.0);
  const auto a = run_eagerly(gradient_for_logits(separate), {logits, labels}, {}).outputs[0].to_vector<float>();
  const auto b = run_eagerly(gradient_for_logits(fused), {logits, labels}, {}).outputs[0].to_vector<float>();
  Tensor x = cast(logits, DType::f32);
  x = copy(x);
  x.requires_grad(true);
  backward(nll_loss(log(softmax(x, 1)), labels));
  const auto eager = x.grad().to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 2e-6) << i;
    EXPECT_NEAR(eager[i], b[i], 2e-6) << i;
  }
}

TEST(ConformancePasses, T55_RemovingANodeLeavesOneSourceAndOneDestination) {
  Graph graph = parse(
      "graph g(%x: f32[4], %y: f32[4]) {\n %a: f32[4] = exp(%x)\n %b: f32[4] = neg(%y)\n %c: f32[4] = tanh(%a)\n %d: f32[4] = "
      "relu(%b)\n return %c, %d\n}\n");
  EXPECT_EQ(source_nodes(graph).size(), 2u);
  EXPECT_EQ(sink_nodes(graph).size(), 2u);
  graph.outputs.pop_back();
  graph.output_names.pop_back();
  const Graph smaller = dead_code(graph);
  EXPECT_EQ(source_nodes(smaller), std::vector<NodeId>{0});
  EXPECT_EQ(sink_nodes(smaller), std::vector<NodeId>{1});
}

TEST(ConformancePasses, T56_MasksOfWhoReachesWhom) {
  const Graph graph = parse(
      "graph g(%x: f32[4]) {\n"
      " %s0: f32[4] = exp(%x)\n %s1: f32[4] = neg(%x)\n %s2: f32[4] = tanh(%x)\n %s3: f32[4] = relu(%x)\n"
      " %a: f32[4] = add(%s1, %s2)\n %b: f32[4] = mul(%a, %s3)\n"  // reached from sources 1, 2, 3
      " %c: f32[4] = neg(%s0)\n"                                   // reached from source 0
      " %d: f32[4] = add(%a, %x)    [after=[%c]]\n"                // reached from source 0 by an order edge, and from 1 and 2
      " return %b, %c, %d\n}\n");
  const NodeId sources[] = {0, 1, 2, 3};
  const std::vector<std::uint64_t> masks = predecessor_masks(graph, sources);
  EXPECT_EQ(masks[5], 14u);
  EXPECT_EQ(masks[6], 1u);
  EXPECT_EQ(masks[7], 7u);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(reachable(graph, sources[k], n), (masks[n] >> k & 1) != 0) << k << " " << n;
  EXPECT_THROW(predecessor_masks(graph, std::vector<NodeId>(65, 0)), UsageError);
}

TEST(ConformancePasses, T81_FastMathAndWhatItChanges) {
  const Graph ratio = parse("graph g(%y: f32[]) {\n %r: f32[] = div(%y, %y)\n return %r\n}\n");
  EXPECT_TRUE(std::isnan(run_scalar(without_fast_math(ratio), {0})));
  EXPECT_EQ(run_scalar(with_fast_math(ratio), {0}), 1);

  const Graph there_and_back =
      parse("graph g(%x: f32[]) {\n %e: f32[] = exp(%x)\n %l: f32[] = log(%e)\n %n: f32[] = neg(%l)\n return %n\n}\n");
  EXPECT_EQ(without_fast_math(there_and_back).node_count(), 3);
  EXPECT_EQ(with_fast_math(there_and_back).node_count(), 1);

  const Graph sum = parse(
      "graph g(%x: f32[], %y: f32[]) {\n %a: f32[] = exp(%x)\n %b: f32[] = exp(%y)\n %s: f32[] = add(%a, %b)\n %l: f32[] = "
      "log(%s)\n return %l\n}\n");
  EXPECT_FALSE(std::isfinite(run_scalar(without_fast_math(sum), {1e4, 0})));
  EXPECT_EQ(run_scalar(with_fast_math(sum), {1e4, 0}), 1e4);
}

TEST(ConformancePasses, T100_ABadShapeAnywhereRaises) {
  const Graph graph = test::PassProgram(5).make(40);
  verify(graph);
  int tried = 0;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    if (graph.nodes[n].op->is(kDeclaredTypes)) continue;
    Graph broken = graph;
    Shape& shape = broken.values[graph.nodes[n].first_output].type.shape;
    if (shape.rank == kMaxRank) continue;
    shape.sizes[shape.rank++] = 7;
    ++tried;
    try {
      verify(broken);
      FAIL() << "not noticed: " << broken.node_text(n);
    } catch (const InvalidGraphError& e) {
      EXPECT_NE(std::string(e.what()).find(graph.nodes[n].op->name), std::string::npos) << e.what();
    }
    EXPECT_THROW(make_plan(broken), InvalidGraphError);
  }
  EXPECT_GT(tried, 30);
  // The tensors that are bound must have the right shapes too.
  const Graph small =
      parse("graph g(%x: f32[4]) state(%w: f32[4]) {\n %y: f32[4] = add(%x, %w)\n return %y\n update %w = %y\n}\n");
  Executor executor(make_plan(small));
  EXPECT_THROW(executor.set_input("x", empty({DType::f32, {5}})), TypeError);
  EXPECT_THROW(executor.bind_state("w", empty({DType::f32, {2, 2}})), TypeError);
  EXPECT_THROW(executor.set_state("w", empty({DType::f64, {4}})), TypeError);
  EXPECT_THROW(run_eagerly(small, {empty({DType::f32, {5}})}, {empty({DType::f32, {4}})}), TypeError);
}

// Returns true if the DAG of pieces has a cycle. A slow and simple test: it removes pieces that wait for no other, until
// none can be removed.
bool has_cycle(const Graph& graph, const Partition& parts) {
  std::vector<std::vector<char>> waits(parts.pieces.size(), std::vector<char>(parts.pieces.size(), 0));
  for (NodeId n = 0; n < graph.node_count(); ++n)
    for (ValueId v : graph.inputs(graph.nodes[n]))
      if (const NodeId p = graph.values[v].node; p != kNone && parts.of_node[p] != parts.of_node[n])
        waits[parts.of_node[n]][parts.of_node[p]] = 1;
  std::vector<char> gone(parts.pieces.size(), 0);
  for (std::size_t left = parts.pieces.size(); left > 0; --left) {
    std::size_t free = parts.pieces.size();
    for (std::size_t p = 0; p < parts.pieces.size(); ++p) {
      bool waiting = gone[p] != 0;
      for (std::size_t q = 0; q < parts.pieces.size(); ++q) waiting = waiting || (waits[p][q] && !gone[q]);
      if (!waiting) free = p;
    }
    if (free == parts.pieces.size()) return true;
    gone[free] = 1;
  }
  return false;
}

TEST(ConformancePasses, T120_PartitionsMakeNoCyclesAndChangeNothing) {
  // The graph with the gradients for %x and %w as outputs, and with a state that is updated.
  const Graph forward = parse(
      "graph g(%x: f32[4,4]) state(%w: f32[4,4], %mean: f32[4,4] [role=statistic]) {\n"
      " %e: f32[4,4] = exp(%x)\n %c: f32[4,4] = cos(%e)\n %s: f32[4,4] = sin(%w)\n %a: f32[4,4] = add(%s, %c)\n"
      " %f: f32[4,4] = exp(%s)\n %m: f32[4,4] = add(%f, %a)\n %n: f32[4,4] = add(%mean, %e)\n %loss: f32[] = sum(%m) "
      "{axes=[0,1]}\n"
      " return %loss, %a\n update %mean = %n\n}\n");
  const ValueId targets[] = {forward.outputs[0]}, wrt[] = {0, 1};
  GraphGradient made = gradient(forward, targets, wrt);
  Graph graph = std::move(made.graph);
  for (ValueId g : made.gradients) graph.outputs.push_back(g);
  graph.output_names.resize(graph.outputs.size());
  verify(graph);
  const auto inputs = test::operands_of(graph, 0, 1, 1), state = test::operands_of(graph, 1, 2, 2);
  const EagerResult plain = run_eagerly(graph, inputs, state);
  const std::vector<std::string> ops = {"exp", "cos", "sin", "add", "mul"};
  for (unsigned chosen = 0; chosen < 32; ++chosen) {
    SCOPED_TRACE(chosen);
    const auto selected = [&](const Graph& g, NodeId n) {
      for (std::size_t k = 0; k < ops.size(); ++k)
        if ((chosen >> k & 1) != 0 && g.nodes[n].op->name == ops[k]) return true;
      return false;
    };
    const Partition parts = partition(graph, selected);
    EXPECT_FALSE(has_cycle(graph, parts));
    std::size_t nodes = 0, selected_runs = 0;
    for (const Piece& piece : parts.pieces) {
      nodes += piece.nodes.size();
      for (NodeId n : piece.nodes) EXPECT_EQ(selected(graph, n), piece.selected);
    }
    EXPECT_EQ(nodes, graph.nodes.size());
    test::expect_equal_results(plain, run_pieces(graph, parts, inputs, state));
    // selected pieces run by a plan, the others eagerly
    const auto by_plan = [&](const Piece& piece, const std::vector<Tensor>& given) {
      if (!piece.selected) return run_eagerly(piece.graph, given, {}).outputs;
      ++selected_runs;
      Executor executor(make_plan(piece.graph));
      for (std::size_t i = 0; i < given.size(); ++i) executor.set_input(static_cast<int>(i), given[i]);
      executor.run();
      return executor.outputs();
    };
    test::expect_equal_results(plain, run_pieces(graph, parts, inputs, state, by_plan));
    EXPECT_EQ(selected_runs > 0, chosen > 0);
  }
}

TEST(ConformancePasses, T120_ExpCosAndSinAddAreNotTornIntoACycle) {
  // Joining exp with add and sin with cos would make each pair wait for the other.
  const Graph graph = parse(
      "graph g(%x: f32[4], %y: f32[4]) {\n %e: f32[4] = exp(%x)\n %s: f32[4] = sin(%y)\n %c: f32[4] = cos(%e)\n %a: f32[4] = "
      "add(%s, %c)\n %b: f32[4] = mul(%a, %e)\n"
      " return %a, %b\n}\n");
  const Partition parts = partition(graph, [](const Graph& g, NodeId n) { return g.nodes[n].op->name != std::string("cos"); });
  EXPECT_FALSE(has_cycle(graph, parts));
  EXPECT_NE(parts.of_node[0], parts.of_node[3]);  // a path leads from exp through cos to add
  EXPECT_EQ(parts.of_node[3], parts.of_node[4]);
}

void expect_squares_pass(int n) {
  std::string text = "graph g(%v0: f32[4]) {\n";
  for (int i = 1; i <= n; ++i)
    text += " %v" + std::to_string(i) + ": f32[4] = mul(%v" + std::to_string(i - 1) + ", %v" + std::to_string(i - 1) + ")\n";
  const Graph graph = parse(text + " return %v" + std::to_string(n) + "\n}\n");
  for (const Pass* pass : all_passes()) {
    for (bool fast : {false, true}) {
      PassOptions options = pass->sample;
      options.fast_math = fast;
      EXPECT_EQ(run_pass(*pass, graph, options).node_count(), n) << pass->name;
    }
  }
  const Partition parts = partition(graph, [](const Graph&, NodeId node) { return node % 2 == 0; });
  EXPECT_EQ(parts.pieces.size(), static_cast<std::size_t>(n));
  EXPECT_EQ(find_fusion_groups(graph).count, 1);
  EXPECT_TRUE(reachable(graph, 0, n - 1));
  EXPECT_EQ(make_plan(graph).nodes, n);
}

// The graph has 2^40 paths from end to end. A pass that walked every path would never end. pass_bench measures how the time
// grows.
TEST(ConformancePasses, W5_SquaresFortyTimesThroughEveryPass) { expect_squares_pass(40); }

}  // namespace
}  // namespace tapedeck
