// Tests gradient(graph) on graphs written by hand, and on a graph of every op's examples. The oracle is eager backward, bit
// for bit.
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>

#include <tapedeck/tests/engine/differences.h>
#include <tapedeck/tests/engine/gradient/run_graph.h>
#include <tapedeck/tests/engine/messages.h>

namespace tapedeck::testing {
namespace {

const char* const kTwoLayers = R"(graph net(%x: f32[4,3], %y: f32[4,2]) state(%w: f32[3,5], %v: f32[5,2]) {
  %h: f32[4,5] = matmul(%x, %w)   [path="fc1", site="train.cpp:7"]
  %r: f32[4,5] = relu(%h)
  %p: f32[4,2] = matmul(%r, %v)   [path="fc2"]
  %e: f32[4,2] = sub(%p, %y)
  %q: f32[4,2] = square(%e)
  %loss: f32[] = mean(%q) {axes=[0,1], keepdims=false}
  return %loss
})";

std::vector<Tensor> random_values(const Graph& g, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> given;
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
    const Type& type = g.values[v].type;
    std::vector<float> numbers;
    for (double x : random_numbers(type.numel(), random)) numbers.push_back(static_cast<float>(x));
    given.push_back(from_vector(numbers, type.shape));
  }
  return given;
}

void expect_equal_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << "gradient " << i;
}

TEST(GraphGradient, EqualsEagerBackwardBitForBit) {
  const Graph g = parse(kTwoLayers);
  const std::vector<Tensor> given = random_values(g, 1);
  const GraphGradient made = gradient_by_name(g, {"loss"}, {"w", "v", "x"});
  expect_equal_bits(run_gradients(made, given), eager_gradients(g, {"loss"}, {"w", "v", "x"}, given));
}

TEST(GraphGradient, LeavesTheForwardGraphAsItIs) {
  const Graph g = parse(kTwoLayers);
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  const GraphGradient made = gradient_by_name(g, {"loss"}, {"w"}, options);
  EXPECT_EQ(print(g), print(parse(kTwoLayers)));
  ASSERT_EQ(made.moved.size(), g.values.size());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const ValueId now = made.moved[v];
    EXPECT_EQ(made.graph.value_name(now), g.value_name(v));
    EXPECT_EQ(made.graph.values[now].type, g.values[v].type);
  }
  EXPECT_EQ(made.graph.outputs.size(), 1u);
  EXPECT_EQ(made.graph.values[2].name, Name("grad.loss"));
  EXPECT_TRUE(made.graph.is_input(2)) << "the head is the last input";
}

TEST(GraphGradient, NotesSayWhereANodeComesFrom) {
  const GraphGradient made = gradient_by_name(parse(kTwoLayers), {"loss"}, {"w"});
  const ValueId dw = made.gradients[0];
  const Node& node = made.graph.nodes[made.graph.values[dw].node];
  EXPECT_EQ(node.origin.phase, Phase::backward);
  EXPECT_EQ(node.origin.twin, Name("h"));
  EXPECT_EQ(node.origin.path, Name("fc1"));
  EXPECT_EQ(node.origin.site, Name("train.cpp:7"));
  EXPECT_EQ(made.graph.value_name(dw).rfind("grad.fc1.", 0), 0u) << made.graph.value_name(dw);
  EXPECT_EQ(print(parse(print(made.graph))), print(made.graph));
}

TEST(GraphGradient, TargetsAndWrtsAreAnyValues) {
  const Graph g = parse(R"(graph g(%x: f32[3]) { %y: f32[3] = square(%x) %z: f32[3] = square(%y) return %z })");
  const std::vector<Tensor> given = {tensor({1, 2, 3})};
  const std::vector<Tensor> grads = run_gradients(gradient_by_name(g, {"z", "y"}, {"y", "x", "z"}), given);
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{3, 9, 19}));    // the derivative is 2 y + 1
  EXPECT_EQ(grads[1].to_vector<float>(), (std::vector<float>{6, 36, 114}));  // the derivative is (2 y + 1) 2 x
  EXPECT_EQ(grads[2].to_vector<float>(), (std::vector<float>{1, 1, 1}));
  const std::vector<Tensor> own = run_gradients(gradient_by_name(g, {"x"}, {"x"}), given);
  EXPECT_EQ(own[0].to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(GraphGradient, WrtsThatAreUnreachedGetExactlyZero) {
  const Graph g = parse(R"(graph g(%x: f32[3], %u: f32[2]) { %y: f32[3] = square(%x) %after: f32[3] = exp(%y) return %y })");
  const GraphGradient made = gradient_by_name(g, {"y"}, {"u", "after", "x"});
  const std::vector<Tensor> grads = run_gradients(made, {tensor({1, 2, 3}), tensor({1, 2})});
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(grads[1].to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(GraphGradient, WhatIsAskedTwiceIsTwoValues) {
  const Graph g = parse(R"(graph g(%a: f32[2], %b: f32[2]) { %y: f32[2] = add(%a, %b) return %y })");
  const GraphGradient made = gradient_by_name(g, {"y"}, {"a", "b", "a"});
  EXPECT_NE(made.gradients[0], made.gradients[1]);
  EXPECT_NE(made.gradients[0], made.gradients[2]);
  EXPECT_NE(made.gradients[1], made.gradients[2]);
  for (const Tensor& t : run_gradients(made, {tensor({1, 2}), tensor({3, 4})}))
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(GraphGradient, RequestsAddWriteNone) {
  const Graph g = parse(R"(graph g(%a: f32[2], %old: f32[2], %b: f32[2]) { %y: f32[2] = mul(%a, %b) return %y })");
  GraphGradientOptions options;
  options.requests = {GradRequest::add, GradRequest::none, GradRequest::add};
  options.add_to = {value_named(g, "old"), kNone, kNone};
  const GraphGradient made = gradient_by_name(g, {"y"}, {"a", "b", "b"}, options);
  EXPECT_EQ(made.gradients[1], kNone);
  ASSERT_EQ(made.graph.n_inputs, 4);
  EXPECT_EQ(made.graph.values[3].name, Name("grad_in.b"));
  const std::vector<Tensor> grads = run_gradients(made, {tensor({1, 2}), tensor({10, 20}), tensor({3, 4}), tensor({100, 200})});
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{13, 24}));
  EXPECT_EQ(grads[2].to_vector<float>(), (std::vector<float>{101, 202}));
}

// If no gradient arrives, an added-to gradient stays the same to the last bit, even -0.
TEST(GraphGradient, AddingWhereNothingArrivesIsACopy) {
  const Graph g = parse(R"(graph g(%a: f32[2], %old: f32[2], %b: f32[2]) { %y: f32[2] = neg(%a) return %y })");
  GraphGradientOptions options;
  options.requests = {GradRequest::add};
  options.add_to = {value_named(g, "old")};
  options.allow_unreached = true;
  const GraphGradient made = gradient_by_name(g, {"y"}, {"b"}, options);
  const Tensor old = tensor({-0.0f, 7});
  EXPECT_TRUE(bit_equal(run_gradients(made, {tensor({1, 2}), old, tensor({3, 4})})[0], old));
  EXPECT_NE(made.gradients[0], made.moved[1]);
}

TEST(GraphGradient, OnlyNodesOnTheWayGetBackwardNodes) {
  const Graph g = parse(kTwoLayers);
  // The gradient for v needs neither the gradient of the first layer nor the operands of the first product.
  const GraphGradient made = gradient_by_name(g, {"loss"}, {"v"});
  for (const Node& node : made.graph.nodes)
    if (node.origin.phase == Phase::backward) {
      EXPECT_NE(node.origin.twin, Name("h"));
      EXPECT_NE(node.origin.twin, Name("r"));
    }
  EXPECT_EQ(op_counts(made.graph, Phase::backward)["matmul"], 1);
}

// The gradient of maximum needs a boolean mask. The forward pass computes this mask right after %m, so that backward does
// not read the operands.
TEST(GraphGradient, ForwardPartsStandBehindTheirTwins) {
  const Graph g = parse(R"(graph g(%x: f32[2,6], %z: f32[2,6]) {
    %m: f32[2,6] = maximum(%x, %z)   [region=3]
    %e: f32[2,6] = exp(%m)
    return %e
  })");
  const GraphGradient made = gradient_by_name(g, {"e"}, {"x"});
  const NodeId m = made.graph.values[value_named(made.graph, "m")].node;
  const Node& part = made.graph.nodes[m + 1];
  EXPECT_EQ(part.origin.phase, Phase::forward);
  EXPECT_EQ(part.origin.region, 3);
  EXPECT_EQ(made.graph.output_values(part)[0].type.dtype, DType::boolean);
  for (const Node& node : made.graph.nodes)
    for (ValueId v : made.graph.inputs(node)) {
      if (node.origin.phase != Phase::backward) break;
      EXPECT_FALSE(made.graph.is_input(v)) << "backward reads %" << made.graph.value_name(v);
    }
}

TEST(GraphGradient, ATargetThatDependsOnNoWrtIsRefused) {
  const Graph g = parse(R"(graph g(%x: f32[4], %w: f32[4]) {
    %y: f32[4] = exp(%x)
    %z: f32[4] = neg(%w)
    return %y, %z
  })");
  EXPECT_MENTIONS(message_of<GradientError>([&] {
                    gradient_by_name(g, {"y", "z"}, {"x"});
                  }),
                  "[gradient] the target %z: f32[4] depends on no value that the gradient is for");
  EXPECT_NO_THROW(gradient_by_name(g, {"y", "z"}, {"x", "w"}));
  EXPECT_NO_THROW(gradient_by_name(g, {"y"}, {"x", "w"})) << "the gradient of w is zero";
  GraphGradientOptions options;
  options.allow_unreached = true;
  EXPECT_NO_THROW(gradient_by_name(g, {"y", "z"}, {"x"}, options));
}

TEST(GraphGradient, MistakesAreNamed) {
  const Graph g = parse(R"(graph g(%x: f32[4,4], %i: i64[4]) {
    %y: f32[4,4] = exp(%x)
    %o: f32[4,4], %k: f32[] = opaque(%y)    [site="train.cpp:12"]
    %z: f32[4,4] = neg(%o)
    return %z
  })");
  EXPECT_MENTIONS(message_of<TypeError>([&] { gradient_by_name(g, {"z"}, {"i"}); }), "%i: i64[4] is not of a floating type");
  EXPECT_MENTIONS(message_of<TypeError>([&] { gradient_by_name(g, {"i"}, {"x"}); }), "the target %i: i64[4]");
  EXPECT_MENTIONS(message_of<GradientError>([&] { gradient_by_name(g, {"z"}, {"x"}); }),
                  "'opaque' at train.cpp:12 has no gradient");
  EXPECT_MENTIONS(message_of<GradientError>([&] { gradient_by_name(g, {"z"}, {"x"}); }), "%o: f32[4,4]");
  EXPECT_NO_THROW(gradient_by_name(g, {"z"}, {"o"})) << "the op is not on the way";
  const ValueId nobody[] = {17};
  EXPECT_MENTIONS(message_of<UsageError>([&] { gradient(g, nobody, nobody); }), "no value 17");
  GraphGradientOptions options;
  options.heads = {value_named(g, "k")};
  EXPECT_MENTIONS(message_of<TypeError>([&] { gradient_by_name(g, {"z"}, {"o"}, options); }),
                  "the head gradient %k: f32[] does not fit the target %z");
  options.heads = {kNone, kNone};
  EXPECT_MENTIONS(message_of<UsageError>([&] { gradient_by_name(g, {"z"}, {"o"}, options); }),
                  "2 head gradients for 1 targets");
}

// Differentiates twice: the gradient of the sum of gradients.
TEST(GraphGradient, GradientsOfGradients) {
  const Graph g = parse(R"(graph g(%x: f32[3]) { %c: f32[3] = sin(%x) return %c })");
  GraphGradient once = gradient_by_name(g, {"c"}, {"x"});
  const ValueId dx[] = {once.gradients[0]}, x[] = {0};
  const GraphGradient twice = gradient(once.graph, dx, x);
  const std::vector<float> at = {0.1f, 0.7f, 2};
  const std::vector<float> second = run_gradients(twice, {from_vector(at, {3})})[0].to_vector<float>();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(second[i], -std::sin(at[i]), 1e-6);
}

// The modes of the calling thread do not change the generated graph.
TEST(GraphGradient, IsTheSameInsideAnyScope) {
  const Graph g = parse(kTwoLayers);
  const std::string plain = print(gradient_by_name(g, {"loss"}, {"w", "v"}).graph);
  const Autocast autocast(DType::bf16);
  const PathScope path("elsewhere");
  const NoGrad no_grad;
  EXPECT_EQ(print(gradient_by_name(g, {"loss"}, {"w", "v"}).graph), plain);
  checkpoint([&] {
    EXPECT_EQ(print(gradient_by_name(g, {"loss"}, {"w", "v"}).graph), plain);
    return tensor({1});
  });
  EXPECT_EQ(tape_stats().nodes, 0);
}

// ---- gradients of every op ----

// A graph of one node that computes the example.
Graph graph_of(const Example& e, const std::vector<Tensor>& operands, const std::vector<Tensor>& results) {
  Graph g;
  std::vector<ValueId> in;
  std::vector<Type> out;
  for (std::size_t i = 0; i < operands.size(); ++i) in.push_back(g.add_input("x" + std::to_string(i), operands[i].type()));
  for (const Tensor& t : results) out.push_back(t.type());
  g.add_node(*e.op, in, e.attrs(), out);
  for (std::size_t k = 0; k < results.size(); ++k) {
    g.values[in.size() + k].name = "y" + std::to_string(k);
    g.outputs.push_back(static_cast<ValueId>(in.size() + k));
  }
  verify(g);
  return g;
}

// Returns the number of compared gradients.
int expect_graph_equals_eager(const Example& e) {
  std::mt19937_64 random(29);
  std::vector<Tensor> operands = make_operands(e, DType::f64, 29);
  std::vector<Tensor> leaves, targets, heads, wrt;
  for (const Tensor& t : operands) {
    leaves.push_back(t.detach());
    if (is_floating(t.dtype())) wrt.push_back(leaves.back().requires_grad(true));
  }
  const std::vector<Tensor> results = run(e, leaves), all_heads = random_heads(results, random);
  const Graph g = graph_of(e, operands, results);
  std::vector<ValueId> graph_targets, graph_wrt;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!all_heads[k].defined() || !results[k].requires_grad()) continue;
    targets.push_back(results[k]);
    heads.push_back(all_heads[k]);
    graph_targets.push_back(static_cast<ValueId>(operands.size() + k));
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (is_floating(operands[i].dtype())) graph_wrt.push_back(static_cast<ValueId>(i));
  if (targets.empty() || wrt.empty()) return 0;
  GradientOptions options;
  options.heads = heads;
  const std::vector<Tensor> eager = gradients(targets, wrt, options);
  GraphGradientOptions graph_options;
  graph_options.heads_as_inputs = true;
  const GraphGradient made = gradient(g, graph_targets, graph_wrt, graph_options);
  operands.insert(operands.end(), heads.begin(), heads.end());
  const std::vector<Tensor> found = run_gradients(made, operands);
  for (std::size_t i = 0; i < eager.size(); ++i) {
    const Tensor expected = eager[i].defined() ? eager[i] : zeros(wrt[i].shape(), wrt[i].dtype());
    EXPECT_TRUE(bit_equal(found[i], expected)) << "operand " << graph_wrt[i] << "\n" << print(made.graph);
  }
  return static_cast<int>(eager.size());
}

TEST(AllOpsGraphGradient, EqualsEagerBackwardBitForBit) {
  int compared = 0;
  for_every_example([&](const Example& e) {
    if (differentiable(*e.op)) compared += expect_graph_equals_eager(e);
  });
  if (!std::getenv("TAPEDECK_TEST_OP")) {
    EXPECT_GT(compared, 500);
  }
}

}  // namespace
}  // namespace tapedeck::testing
