// Cases of SEEDS.md about gradients generated on graphs. The names hold the numbers of the cases. Expected values are from
// the list or worked out by hand.
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>

#include <tapedeck/tests/engine/gradient/run_graph.h>
#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::testing {
namespace {

using Doubles = std::vector<double>;

Tensor doubles(const Doubles& values, const Shape& shape) { return from_bytes({DType::f64, shape}, values.data()); }
Tensor doubles(const Doubles& values) { return doubles(values, Shape{static_cast<std::int64_t>(values.size())}); }
Tensor number(double value) { return scalar(value, DType::f64); }
Doubles values_of(const Tensor& t) { return t.to_vector<double>(); }

GraphGradientOptions head_inputs() {
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  return options;
}

// The gradients of a graph, and the values of all nodes of forward and backward.
struct Ran {
  GraphGradient made;
  std::vector<Tensor> values;

  double value(const Graph& g, const std::string& name) const { return values[made.moved[value_named(g, name)]].item(); }
  Tensor gradient(std::size_t i) const { return values[made.gradients[i]]; }
};

Ran differentiated(const Graph& g, const std::vector<std::string>& targets, const std::vector<std::string>& wrt,
                   const std::vector<Tensor>& given, const GraphGradientOptions& options = {}) {
  Ran ran;
  ran.made = gradient_by_name(g, targets, wrt, options);
  ran.values = run_graph(ran.made.graph, given);
  return ran;
}

bool has_twin(const Graph& g, const std::string& name) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node& node) { return node.origin.twin == Name(name); });
}

// Counts the backward nodes that fill a value with zeros.
int zero_fills(const Graph& g) {
  int n = 0;
  for (const Node& node : g.nodes) {
    if (node.origin.phase != Phase::backward) continue;
    if (node.op == &ops::full && static_cast<const FullAttrs*>(g.attributes(node))->value == 0) ++n;
    if (node.op == &ops::pad) ++n;
  }
  return n;
}

// The most bytes of values of one type that are alive at the same time in the backward, in the graph's order.
std::int64_t most_alive(const Graph& g, const Type& type) {
  std::vector<NodeId> last(g.values.size(), kNone);
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (ValueId v : g.inputs(g.nodes[n])) last[v] = n;
  std::vector<int> change(static_cast<std::size_t>(g.node_count()) + 2);
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const Value& value = g.values[v];
    if (value.node == kNone || value.type != type || g.nodes[value.node].origin.phase != Phase::backward) continue;
    ++change[value.node];
    --change[static_cast<std::size_t>(std::max(last[v], value.node)) + 1];
  }
  int alive = 0, most = 0;
  for (int c : change) most = std::max(most, alive += c);
  return most;
}

// ---- values and partial gradients ----

TEST(GraphConformance, T1_SimpleDerivative) {
  const Graph g = parse(R"(graph g(%x: f64[]) {
    %xx: f64[] = mul(%x, %x)
    %i: f64[] = reciprocal(%x)
    %l: f64[] = log(%i)
    %v: f64[] = add(%xx, %l)
    return %v
  })");
  const Ran ran = differentiated(g, {"v"}, {"x"}, {number(0.84)});
  EXPECT_NEAR(ran.value(g, "v"), 0.8799534, 1e-6);
  EXPECT_NEAR(ran.gradient(0).item(), 0.4895238, 1e-6);
}

TEST(GraphConformance, T2_WhatTheFormulaDoesNotReadHasGradientZero) {
  const Graph g = parse(R"(graph g(%x: f64[3]) { %y: f64[] = full() {shape=[], dtype=f64, value=1.0} return %y })");
  const Ran ran = differentiated(g, {"y"}, {"x"}, {doubles({1, 2, 3})}, {.allow_unreached = true});
  EXPECT_EQ(values_of(ran.gradient(0)), (Doubles{0, 0, 0}));
}

TEST(GraphConformance, T3_TwoVariables) {
  const Graph g = parse(R"(graph g(%x: f64[], %y: f64[]) {
    %one: f64[] = constant() {value=[1.0]}
    %d: f64[] = sub(%x, %y)
    %p: f64[] = add(%y, %one)
    %v: f64[] = mul(%d, %p)
    return %v
  })");
  const Ran ran = differentiated(g, {"v"}, {"x", "y"}, {number(43.24), number(0.38)});
  EXPECT_NEAR(ran.value(g, "v"), 59.1468, 1e-6);
  EXPECT_NEAR(ran.gradient(0).item(), 1.38, 1e-6);
  EXPECT_NEAR(ran.gradient(1).item(), 41.48, 1e-6);
}

TEST(GraphConformance, T4_APartialDerivativeLeavesTheOtherBranchAlone) {
  const Graph g = parse(R"(graph g(%x: f64[], %y: f64[]) {
    %p: f64[] = mul(%y, %x)
    %i: f64[] = reciprocal(%x)
    %l: f64[] = log(%i)
    %v: f64[] = add(%p, %l)
    return %v
  })");
  const Ran ran = differentiated(g, {"v"}, {"y"}, {number(0.84), number(1.23)});
  EXPECT_NEAR(ran.value(g, "v"), 1.2075534, 1e-6);
  EXPECT_NEAR(ran.gradient(0).item(), 0.84, 1e-6);
  EXPECT_FALSE(has_twin(ran.made.graph, "i") || has_twin(ran.made.graph, "l")) << print(ran.made.graph);
  EXPECT_TRUE(has_twin(ran.made.graph, "p"));
}

TEST(GraphConformance, T46_AWeightUsedTwice) {
  const Graph g = parse(R"(graph g(%a0: f64[], %a1: f64[], %b0: f64[], %b1: f64[]) state(%w: f64[], %bias: f64[]) {
    %p0: f64[] = mul(%a0, %w)
    %y0: f64[] = add(%p0, %bias)
    %p1: f64[] = mul(%a1, %w)
    %y1: f64[] = add(%p1, %bias)
    %e0: f64[] = sub(%y0, %b0)
    %e1: f64[] = sub(%y1, %b1)
    %l0: f64[] = square(%e0)
    %l1: f64[] = square(%e1)
    return %l0, %l1
  })");
  const double w = 0.7, b = -0.3;
  const Ran ran = differentiated(g, {"l0", "l1"}, {"a0", "a1", "b0", "b1", "w", "bias"},
                                 {number(2), number(2), number(2), number(3), number(w), number(b)});
  EXPECT_NEAR(ran.gradient(0).item(), 2 * w * (2 * w + b - 2), 1e-12);
  EXPECT_NEAR(ran.gradient(1).item(), 2 * w * (2 * w + b - 3), 1e-12);
  EXPECT_NEAR(ran.gradient(2).item(), -2 * (2 * w + b - 2), 1e-12);
  EXPECT_NEAR(ran.gradient(3).item(), -2 * (2 * w + b - 3), 1e-12);
  EXPECT_NEAR(ran.gradient(4).item(), 4 * (2 * w + b - 2) + 4 * (2 * w + b - 3), 1e-12);
  EXPECT_NEAR(ran.gradient(5).item(), 2 * (2 * w + b - 2) + 2 * (2 * w + b - 3), 1e-12);
}

// ---- views ----

TEST(GraphConformance, T6_ViewsOfOneVector) {
  const Graph g = parse(R"(graph g(%x: f64[2]) {
    %c: f64[2] = constant() {value=[1.0,1.5]}
    %y: f64[2] = add(%x, %c)
    %x1: f64[1] = slice(%x) {starts=[0], stops=[1]}
    %y1: f64[1] = slice(%y) {starts=[0], stops=[1]}
    %y2: f64[1] = slice(%y) {starts=[1], stops=[2]}
    %q: f64[1] = mul(%y1, %y1)
    %s: f64[1] = add(%y1, %q)
    %t: f64[1] = add(%x1, %s)
    %e: f64[1] = exp(%y2)
    %v: f64[1] = add(%t, %e)
    return %v
  })");
  const Ran ran = differentiated(g, {"v"}, {"x"}, {doubles({0.44, -1.18})});
  EXPECT_NEAR(ran.value(g, "v"), 5.3307278, 1e-6);
  EXPECT_NEAR(values_of(ran.gradient(0))[0], 4.88, 1e-6);
  EXPECT_NEAR(values_of(ran.gradient(0))[1], 1.3771278, 1e-6);
}

TEST(GraphConformance, T8_TheElementNobodyReadsHasGradientZero) {
  const Graph g = parse(R"(graph g(%x: f64[2]) {
    %x1: f64[1] = slice(%x) {starts=[0], stops=[1]}
    %y1: f64[1] = log(%x1)
    %q: f64[1] = mul(%y1, %y1)
    %v: f64[1] = add(%y1, %q)
    return %v
  })");
  const Ran ran = differentiated(g, {"v"}, {"x"}, {doubles({0.21, -13.22})});
  EXPECT_NEAR(ran.value(g, "v"), 0.8749736, 1e-6);
  EXPECT_NEAR(values_of(ran.gradient(0))[0], -10.1014071, 1e-5);
  EXPECT_EQ(values_of(ran.gradient(0))[1], 0);
}

const char* const kQuadrants = R"(graph g(%a: f32[100,100,128]) {
    %b: f32[100,100,128] = exp(%a)
    %q0: f32[50,100,64] = slice(%b) {starts=[0,0,0], stops=[50,100,64]}
    %q1: f32[50,100,64] = slice(%b) {starts=[0,0,64], stops=[50,100,128]}
    %q2: f32[50,100,64] = slice(%b) {starts=[50,0,0], stops=[100,100,64]}
    %q3: f32[50,100,64] = slice(%b) {starts=[50,0,64], stops=[100,100,128]}
    %s0: f32[50,100,64] = square(%q0)
    %s1: f32[50,100,64] = square(%q1)
    %s2: f32[50,100,64] = square(%q2)
    %s3: f32[50,100,64] = square(%q3)
    %u: f32[50,100,128] = concat(%s0, %s1) {axis=2}
    %d: f32[50,100,128] = concat(%s2, %s3) {axis=2}
    %c: f32[100,100,128] = concat(%u, %d) {axis=0}
    %e: f32[100,100,128] = sin(%c)
    return %e
  })";

TEST(GraphConformance, T9_QuadrantsThatTileNeedNoZeros) {
  const GraphGradient made = gradient_by_name(parse(kQuadrants), {"e"}, {"a", "b", "c"});
  EXPECT_EQ(zero_fills(made.graph), 0) << print(made.graph);
}

TEST(GraphConformance, T10_TwoOfTheFourNeedZeros) {
  // Only %u is read. So no piece covers the lower half of %b's gradient, which needs zeros. The gradient of %u consists of
  // two halves and needs none.
  EXPECT_EQ(zero_fills(gradient_by_name(parse(kQuadrants), {"u"}, {"a"}).graph), 1);
  EXPECT_EQ(zero_fills(gradient_by_name(parse(kQuadrants), {"u"}, {"u", "s0"}).graph), 0);
}

TEST(GraphConformance, T11_OverlappingWindowsAreSummed) {
  const Graph g = parse(R"(graph g(%a: f32[2,3,96]) {
    %b: f32[2,3,96] = exp(%a)
    %l: f32[2,3,64] = slice(%b) {starts=[0,0,0], stops=[2,3,64]}
    %r: f32[2,3,64] = slice(%b) {starts=[0,0,32], stops=[2,3,96]}
    return %l, %r
  })");
  const GraphGradient made = gradient_by_name(g, {"l", "r"}, {"b"});
  auto counts = op_counts(made.graph, Phase::backward);
  EXPECT_EQ(counts["add"], 1);
  EXPECT_EQ(zero_fills(made.graph), 0) << "together they cover everything";
  const std::vector<float> db = run_gradients(made, {zeros({2, 3, 96})})[0].to_vector<float>();
  for (std::size_t i = 0; i < db.size(); ++i) EXPECT_EQ(db[i], i % 96 >= 32 && i % 96 < 64 ? 2 : 1) << i;
}

TEST(GraphConformance, W1_WindowsThenAFullRead) {
  // In backward order, the full read comes between two windows and again after them.
  const Graph g = parse(R"(graph g(%x: f64[4]) {
    %first: f64[4] = square(%x)
    %a: f64[2] = slice(%x) {starts=[0], stops=[2]}
    %full: f64[4] = sin(%x)
    %b: f64[3] = slice(%x) {starts=[1], stops=[4]}
    %c: f64[2] = slice(%x) {starts=[2], stops=[4]}
    return %first, %a, %full, %b, %c
  })");
  const Doubles x = {0.1, 0.2, 0.3, 0.4}, h = {10, 100, 1000, 10000, 100000};
  GraphGradientOptions options = head_inputs();
  std::vector<Tensor> given = {doubles(x)};
  const std::int64_t sizes[] = {4, 2, 4, 3, 2};
  for (std::size_t i = 0; i < 5; ++i) given.push_back(doubles(Doubles(static_cast<std::size_t>(sizes[i]), h[i])));
  const Ran ran = differentiated(g, {"first", "a", "full", "b", "c"}, {"x"}, given, options);
  const Doubles got = values_of(ran.gradient(0));
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected =
        2 * x[i] * h[0] + (i < 2 ? h[1] : 0) + std::cos(x[i]) * h[2] + (i >= 1 ? h[3] : 0) + (i >= 2 ? h[4] : 0);
    EXPECT_NEAR(got[i], expected, 1e-9) << i;
  }
}

// ---- targets, heads, and ops without a gradient ----

TEST(GraphConformance, T112_HeadsOfTheirOwn) {
  const Graph g = parse(R"(graph g(%x: f64[3,5], %up: f64[1,5], %down: f64[1,5]) {
    %r0: f64[1,5] = slice(%x) {starts=[0,0], stops=[1,5]}
    %r1: f64[1,5] = slice(%x) {starts=[1,0], stops=[2,5]}
    %r2: f64[1,5] = slice(%x) {starts=[2,0], stops=[3,5]}
    return %r0, %r1, %r2
  })");
  GraphGradientOptions options;
  options.heads = {kNone, value_named(g, "up"), value_named(g, "down")};
  const Ran ran = differentiated(
      g, {"r0", "r1", "r2"}, {"x"},
      {doubles(Doubles(15, 1), {3, 5}), doubles({1, 2, 3, 4, 5}, {1, 5}), doubles({5, 4, 3, 2, 1}, {1, 5})}, options);
  EXPECT_EQ(values_of(ran.gradient(0)), (Doubles{1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1}));
}

TEST(GraphConformance, W6_TheSameTargetTwiceAddsItsHeads) {
  const Graph g = parse(R"(graph g(%x: f64[2], %h: f64[2], %k: f64[2]) { %y: f64[2] = square(%x) return %y })");
  GraphGradientOptions options;
  options.heads = values_named(g, {"h", "k"});
  const Ran ran = differentiated(g, {"y", "y"}, {"x"}, {doubles({1, 2}), doubles({1, 10}), doubles({100, 1000})}, options);
  EXPECT_EQ(values_of(ran.gradient(0)), (Doubles{202, 4040}));
  const Ran twice = differentiated(g, {"y", "y"}, {"x"}, {doubles({1, 2}), doubles({1, 10}), doubles({100, 1000})});
  EXPECT_EQ(values_of(twice.gradient(0)), (Doubles{4, 8}));
}

TEST(GraphConformance, T97_AnOpWithoutGradientUnderStopGradient) {
  const char* const text = R"(graph g(%x: f32[1,1,2,2], %dy: f32[1,1,1,1]) {
    %a: f32[1,1,2,2] = exp(%x)
    %p: f32[1,1,2,2] = max_pool2d_grad(%a, %dy)   [site="train.cpp:3"]
    %s: f32[1,1,2,2] = STOP(%p)
    %y: f32[1,1,2,2] = add(%s, %x)
    return %y
  })";
  const auto graph_with = [&](const std::string& op) {
    std::string t = text;
    t.replace(t.find("STOP"), 4, op);
    return parse(t);
  };
  const Ran ran =
      differentiated(graph_with("stop_gradient"), {"y"}, {"x"}, {zeros({1, 1, 2, 2}), ones_like(zeros({1, 1, 1, 1}))});
  EXPECT_EQ(ran.gradient(0).to_vector<float>(), (std::vector<float>(4, 1)));
  const Graph without = graph_with("neg");
  EXPECT_MENTIONS(message_of<GradientError>([&] { gradient_by_name(without, {"y"}, {"x"}); }),
                  "'max_pool2d_grad' at train.cpp:3 has no gradient");
}

TEST(GraphConformance, W7_AnOpWithoutGradientOneOfWhoseResultsIsUnread) {
  // `opaque` has no gradient. Its result %o is read only by `sign`, which passes no gradient, and no node reads %unread. So the
  // gradient of %y needs no gradient of `opaque`, and the gradient of %unread does. In the last call %o is a target too, and
  // the test gives it a head of zeros.
  const Graph g = parse(R"(graph g(%x: f64[3], %nothing: f64[3]) {
    %e: f64[3] = exp(%x)
    %o: f64[3], %unread: f64[3] = opaque(%e)
    %s: f64[3] = sign(%o)
    %stop: f64[3] = stop_gradient(%s)
    %y: f64[3] = mul(%stop, %e)
    %zero: f64[3] = full() {shape=[3], dtype=f64, value=0.0}
    return %y, %o, %unread
  })");
  EXPECT_NO_THROW(gradient_by_name(g, {"y"}, {"x"}));
  EXPECT_MENTIONS(message_of<GradientError>([&] { gradient_by_name(g, {"unread"}, {"x"}); }), "'opaque'");
  GraphGradientOptions options;
  options.heads = {kNone, value_named(g, "zero")};
  const GraphGradient made = gradient_by_name(g, {"y", "o"}, {"x"}, options);
  EXPECT_FALSE(has_twin(made.graph, "o")) << "a gradient of zeros needs no gradient of the op";
}

TEST(GraphConformance, T111_OneOfSeveralResultsAndAnIndexThatPasses) {
  const Graph g = parse(R"(graph g(%x: f64[4], %t: f64[4]) {
    %v: f64[2], %i: i64[2] = topk(%x) {k=2, axis=0}
    %picked: f64[2] = gather(%t, %i) {axis=0}
    %l: f64[2] = square(%v)
    return %l, %picked, %i
  })");
  const std::vector<Tensor> given = {doubles({3, 1, 4, 2}), doubles({10, 20, 30, 40})};
  EXPECT_EQ(values_of(differentiated(g, {"l"}, {"x"}, given).gradient(0)), (Doubles{6, 0, 8, 0}));
  const Ran both = differentiated(g, {"picked", "l"}, {"t", "x"}, given);
  EXPECT_EQ(values_of(both.gradient(0)), (Doubles{1, 0, 1, 0}));
  EXPECT_EQ(values_of(both.gradient(1)), (Doubles{6, 0, 8, 0}));
}

// ---- sums of many pieces ----

// Adds x to a value n - 1 times, so x has many gradient pieces.
TEST(GraphConformance, T98_OneValueAddedEightTimes) {
  for (int n : {2, 7, 8, 9}) {
    std::string text = "graph g(%x: f64[3]) {\n  %s1: f64[3] = square(%x)\n";
    for (int i = 2; i <= n; ++i) text += fmt::format("  %s{}: f64[3] = add(%s{}, %x)\n", i, i - 1);
    const Graph g = parse(text + fmt::format("  return %s{}\n}}", n));
    const Ran ran = differentiated(g, {fmt::format("s{}", n)}, {"x"}, {doubles({1, 2, 3})});
    EXPECT_EQ(values_of(ran.gradient(0)), (Doubles{n + 1.0, n + 3.0, n + 5.0}));
  }
}

TEST(GraphConformance, T101_SumsOfSeveralOperands) {
  for (int n = 1; n <= 9; ++n) {
    std::string inputs, nodes, sum = "x0";
    std::vector<Tensor> given;
    std::vector<std::string> wrt;
    Doubles expected(6);
    for (int i = 0; i < n; ++i) {
      inputs += fmt::format("{}%x{}: f64[2,3]", i ? ", " : "", i);
      if (i > 0) nodes += fmt::format("  %s{}: f64[2,3] = add(%{}, %x{})\n", i, sum, i);
      if (i > 0) sum = fmt::format("s{}", i);
      Doubles x;
      for (int k = 0; k < 6; ++k) x.push_back(std::sin(1 + i * 6 + k));
      for (std::size_t k = 0; k < 6; ++k) expected[k] = i ? expected[k] + x[k] : x[k];
      given.push_back(doubles(x, {2, 3}));
      wrt.push_back(fmt::format("x{}", i));
    }
    const Graph g = parse("graph g(" + inputs + ") {\n" + nodes + "  return %" + sum + "\n}");
    const Doubles head = {1, -2, 3, -4, 5, -6};
    given.push_back(doubles(head, {2, 3}));
    const Ran ran = differentiated(g, {sum}, wrt, given, head_inputs());
    EXPECT_EQ(values_of(ran.values[ran.made.moved[value_named(g, sum)]]), expected);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) EXPECT_EQ(values_of(ran.gradient(i)), head);
  }
}

// Gradient pieces add up in reverse order of their readers, and the first piece is written. These floating-point numbers
// give other sums in any other order.
TEST(GraphConformance, PiecesAddInReverseOrder) {
  const Graph g = parse(R"(graph g(%x: f32[], %a: f32[], %b: f32[], %c: f32[]) {
    %p: f32[] = mul(%x, %a)
    %q: f32[] = mul(%x, %b)
    %r: f32[] = mul(%x, %c)
    return %p, %q, %r
  })");
  const float a = 1, b = 1e8f, c = -1e8f;
  const std::vector<Tensor> given = {scalar(1), scalar(a), scalar(b), scalar(c)};
  EXPECT_EQ(run_gradients(gradient_by_name(g, {"p", "q", "r"}, {"x"}), given)[0].item(), (c + b) + a);
  EXPECT_NE(static_cast<double>((c + b) + a), static_cast<double>((a + b) + c)) << "the order shows";
}

TEST(GraphConformance, W8_MoreThan64OperandsOfOneOp) {
  std::string inputs, operands;
  std::vector<Tensor> given;
  for (int i = 0; i < 100; ++i) {
    inputs += fmt::format("{}%x{}: f64[2]", i ? ", " : "", i);
    operands += fmt::format("{}%x{}", i ? ", " : "", i);
    given.push_back(doubles({std::sin(i), std::cos(3 * i)}));
  }
  const Graph g =
      parse("graph g(" + inputs + ") {\n  %c: f64[200] = concat(" + operands + ") {axis=0}\n  %n: f64[] = global_norm(" +
            operands + ")\n  %q: f64[200] = square(%c)\n  return %n, %q\n}");
  double norm = 0;
  for (const Tensor& t : given)
    for (double v : values_of(t)) norm += v * v;
  norm = std::sqrt(norm);
  const std::vector<std::string> wrt = {"x0", "x30", "x31", "x32", "x63", "x64", "x65", "x99"};
  const Ran ran = differentiated(g, {"n", "q"}, wrt, given);
  std::vector<Tensor> leaves, eager_wrt;
  for (const Tensor& t : given) leaves.push_back(t.detach());
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    const std::size_t k = static_cast<std::size_t>(std::stoi(wrt[i].substr(1)));
    const Doubles x = values_of(given[k]), got = values_of(ran.gradient(i));
    for (std::size_t e = 0; e < 2; ++e) EXPECT_NEAR(got[e], x[e] / norm + 2 * x[e], 1e-12) << wrt[i];
    eager_wrt.push_back(leaves[k].requires_grad(true));
  }
  const std::vector<Tensor> eager = gradients({global_norm(leaves), square(concat(leaves, 0))}, eager_wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], ran.gradient(i))) << wrt[i];
}

// A recurrent net of 1000 steps. Only two pieces of the weight's gradient are alive at the same time: the sum so far and the
// next piece.
TEST(GraphConformance, W10_AThousandPiecesOfOneWeight) {
  std::string text = "graph g(%h0: f32[2,8]) state(%w: f32[8,8]) {\n";
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("  %p{0}: f32[2,8] = matmul(%h{0}, %w)\n  %h{1}: f32[2,8] = tanh(%p{0})\n", i, i + 1);
  const GraphGradient made = gradient_by_name(parse(text + "  return %h1000\n}"), {"h1000"}, {"w"});
  EXPECT_EQ(op_counts(made.graph, Phase::backward)["add"], 999);
  const Type square{DType::f32, {8, 8}};
  // The sum, the next piece, their sum, and the transposed weight, which is a view.
  EXPECT_LE(most_alive(made.graph, square), 4);
}

// A graph of n layers with a weight and a bias each.
std::string layers(int n) {
  std::string text = "graph g(%h0: f32[4,4]) state(";
  for (int i = 0; i < n; ++i) text += fmt::format("{}%w{}: f32[4,4], %b{}: f32[4]", i ? ", " : "", i, i);
  text += ") {\n";
  for (int i = 0; i < n; ++i)
    text += fmt::format(
        "  %p{0}: f32[4,4] = matmul(%h{0}, %w{0})\n  %s{0}: f32[4,4] = add(%p{0}, %b{0})\n  %h{1}: f32[4,4] = tanh(%s{0})\n", i,
        i + 1);
  return text + fmt::format("  return %h{}\n}}", n);
}

// gradient_bench measures how the time grows.
TEST(GraphConformance, W11_TenThousandParameters) {
  const auto nodes_made = [](int n) -> NodeId {
    const Graph g = parse(layers(n));
    std::vector<ValueId> wrt, target = {g.outputs[0]};
    for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) wrt.push_back(v);
    const GraphGradient made = gradient(g, target, wrt);
    EXPECT_EQ(made.gradients.size(), static_cast<std::size_t>(2 * n));
    return made.graph.node_count();
  };
  const NodeId small = nodes_made(500), large = nodes_made(5000);
  const NodeId per_layer = (large - small) / 4500;
  EXPECT_EQ(large, small + 4500 * per_layer) << "every layer adds the same number of nodes";
}

// ---- ops that only change shapes ----

TEST(GraphConformance, W12_AShapeOpWhoseGradientIsAskedFor) {
  const Graph g = parse(R"(graph g(%x: f64[2,3]) {
    %r: f64[6] = reshape(%x) {shape=[6]}
    %s: f64[] = sum(%r) {axes=[0], keepdims=false}
    return %s
  })");
  const Ran ran = differentiated(g, {"s"}, {"r", "x", "s"}, {doubles(Doubles(6, 7), {2, 3})});
  EXPECT_EQ(values_of(ran.gradient(0)), Doubles(6, 1));
  EXPECT_EQ(ran.gradient(1).shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of(ran.gradient(1)), Doubles(6, 1));
  EXPECT_EQ(values_of(ran.gradient(2)), Doubles(1, 1));
}

}  // namespace
}  // namespace tapedeck::testing
