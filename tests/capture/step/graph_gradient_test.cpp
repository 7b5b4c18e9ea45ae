// Tests gradient(graph) on whole training steps. It must give, bit for bit, the gradients that the step's own eager backward
// computed. Other tests plan the result.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <fmt/format.h>

#include <map>

namespace tapedeck {
namespace {

// For every parameter, the gradient that the optimizer reads. The eager backward of the recorded step made it.
std::map<ValueId, ValueId> gradients_in_step(const Graph& g) {
  std::map<ValueId, ValueId> found;
  for (const Node& node : g.nodes) {
    const auto in = g.inputs(node);
    if (node.origin.phase == Phase::update && in.size() >= 2 && g.values[in[0]].role == Role::parameter) found[in[0]] = in[1];
  }
  return found;
}

void expect_gradients_of_the_step(const char* model, const ModelOptions& options) {
  SCOPED_TRACE(model);
  const Captured c = record_model(*find_model(model), options);
  std::vector<ValueId> wrt, eager;
  for (auto [parameter, gradient] : gradients_in_step(c.graph)) {
    wrt.push_back(parameter);
    eager.push_back(gradient);
  }
  ASSERT_FALSE(wrt.empty());
  const ValueId loss[] = {c.graph.outputs[0]};
  GraphGradient made = gradient(c.graph, loss, wrt);
  made.graph.outputs.clear();
  made.graph.output_names.clear();
  made.graph.updates.clear();
  for (ValueId v : eager) made.graph.outputs.push_back(made.moved[v]);
  made.graph.outputs.insert(made.graph.outputs.end(), made.gradients.begin(), made.gradients.end());
  const EagerResult result = run_eagerly(made.graph, c.inputs, c.state);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    EXPECT_TRUE(bit_equal(result.outputs[i], result.outputs[wrt.size() + i])) << c.graph.value_name(wrt[i]);
}

TEST(GraphGradientOfModels, EqualsTheStepsOwnBackward) {
  expect_gradients_of_the_step("mlp", {.batch = 4});
  expect_gradients_of_the_step("mlp_attention", {.batch = 2});
  expect_gradients_of_the_step("cnn", {.batch = 2});
  expect_gradients_of_the_step("lenet", {.batch = 2});
  expect_gradients_of_the_step("rnn_cell", {.batch = 2});
}

TEST(GraphGradientOfModels, OfVisionModelsToo) {
  expect_gradients_of_the_step("resnet18", {.batch = 2, .image = 32, .width = 8});
  expect_gradients_of_the_step("mobilenet_v2", {.batch = 2, .image = 32});
  expect_gradients_of_the_step("densenet121", {.batch = 2, .image = 32});
  expect_gradients_of_the_step("squeezenet", {.batch = 1, .image = 64});
  expect_gradients_of_the_step("unet", {.batch = 1, .image = 16, .width = 4});
  expect_gradients_of_the_step("vit_b16", {.batch = 1, .image = 32, .layers = 2, .width = 64});
}

TEST(GraphGradientOfModels, OfLanguageModelsToo) {
  expect_gradients_of_the_step("lstm_lm", {.batch = 2, .seq = 5, .layers = 2, .width = 16});
  expect_gradients_of_the_step("gpt2", {.batch = 2, .seq = 8, .layers = 2, .width = 64});
  expect_gradients_of_the_step("transformer_encoder", {.batch = 2, .seq = 8, .layers = 2, .width = 64});
  expect_gradients_of_the_step("gru_seq2seq_attention", {.batch = 2, .seq = 5, .width = 16});
}

// In mixed precision, casts are nodes, and gradients have the parameters' own type.
TEST(GraphGradientOfModels, OfMixedPrecisionToo) {
  expect_gradients_of_the_step("cnn", {.batch = 2, .dtype = "bf16"});
  expect_gradients_of_the_step("mlp", {.batch = 4, .dtype = "f16"});
}

// ---- plans of generated gradients ----

Graph squarings(const std::string& last) {
  std::string text = "graph g(%x0: f32[10,3,256,256]) {\n";
  for (int i = 0; i < 10; ++i) text += fmt::format("  %x{}: f32[10,3,256,256] = square(%x{})\n", i + 1, i);
  return parse(text + "  %y: f32[10,3,256,256] = " + last + "(%x10)\n  return %y\n}");
}

// The planned peak of forward and backward. The gradient, if requested, is an output.
std::int64_t planned_bytes(const Graph& g, GradRequest request) {
  const ValueId target[] = {g.outputs[0]}, wrt[] = {0};
  GraphGradientOptions options;
  options.requests = {request};
  options.allow_unreached = true;  // a stopped gradient reaches nothing
  GraphGradient made = gradient(g, target, wrt, options);
  if (made.gradients[0] != kNone) {
    made.graph.outputs.push_back(made.gradients[0]);
    made.graph.output_names.resize(made.graph.outputs.size());
  }
  return make_plan(made.graph, {.find_floor = false}).peak_bytes;
}

TEST(GraphConformance, T96_WhatNoGradientFlowsThroughKeepsNothing) {
  const std::int64_t with = planned_bytes(squarings("neg"), GradRequest::write);
  const std::int64_t none = planned_bytes(squarings("neg"), GradRequest::none);
  const Graph stopped = squarings("stop_gradient");
  const std::int64_t size = stopped.values[0].type.bytes();
  EXPECT_GT(with, none + 5 * size);
  // The gradient is zeros. So it costs one output, and no forward value is kept for it.
  EXPECT_EQ(planned_bytes(stopped, GradRequest::none), planned_bytes(squarings("neg"), GradRequest::none));
  EXPECT_LE(planned_bytes(stopped, GradRequest::write), none + size);
}

// Checkpoint regions of the forward graph stay. Backward reads values inside them, and the plan computes these values again.
TEST(GraphGradientOfModels, CheckpointRegionsAreRecomputed) {
  std::string text = "graph g(%h0: f32[16,64]) {\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        "  %a{0}: f32[16,64] = exp(%h{0}) [region={2}]\n  %c{0}: f32[16,64] = sin(%a{0}) [region={2}]\n"
        "  %h{1}: f32[16,64] = maximum(%c{0}, %a{0}) [region={2}]\n",
        i, i + 1, i / 3);
  const Graph g = parse(text + "  return %h12\n}");
  const ValueId target[] = {g.outputs[0]}, wrt[] = {0};
  GraphGradient made = gradient(g, target, wrt);
  made.graph.outputs.push_back(made.gradients[0]);
  made.graph.output_names.resize(2);
  const Plan regions = make_plan(made.graph), all = make_plan(made.graph, {.strategy = Strategy::none});
  EXPECT_GT(regions.recomputed_nodes, 0);
  EXPECT_LT(regions.peak_bytes, all.peak_bytes);
  check_replay(made.graph);
}

// ---- the pass gradient_sums ----

// The gradients of a recurrent net for its weight and its input, with the sums as gradient() generates them.
Graph recurrent(int steps) {
  std::string text = "graph g(%h0: f32[3,8]) state(%w: f32[8,8]) {\n";
  for (int i = 0; i < steps; ++i)
    text += fmt::format("  %p{0}: f32[3,8] = matmul(%h{0}, %w)\n  %h{1}: f32[3,8] = tanh(%p{0})\n", i, i + 1);
  const Graph g = parse(text + fmt::format("  return %h{}\n}}", steps));
  const ValueId target[] = {g.outputs[0]}, wrt[] = {1, 0};
  GraphGradient made = gradient(g, target, wrt);
  made.graph.outputs = made.gradients;
  made.graph.output_names.clear();
  return made.graph;
}

TEST(GradientSums, OfAWeightUsedManyTimesAreAddedTo) {
  const Graph chain = recurrent(50);
  std::vector<GradientSum> chosen;
  const Graph in_place = gradient_sums(chain, &chosen);
  verify(in_place);
  ASSERT_EQ(chosen.size(), 49u);
  for (const GradientSum& sum : chosen) EXPECT_EQ(sum.form, "add-to") << sum.value << ": " << sum.reason;
  EXPECT_EQ(in_place.node_count(), chain.node_count() - 49) << "no piece but the first is stored";
  const std::vector<Tensor> inputs = stand_ins(chain, 0, 1, 1), state = stand_ins(chain, 1, 1, 2);
  const EagerResult a = run_eagerly(chain, inputs, state), b = run_eagerly(in_place, inputs, state);
  for (std::size_t i = 0; i < a.outputs.size(); ++i) EXPECT_TRUE(bit_equal(a.outputs[i], b.outputs[i]));
  check_replay(in_place, {.find_floor = false});
}

TEST(GradientSums, OfWhatLivesOnAnywayAreOneNode) {
  std::string text = "graph g(%x: f32[64], %h: f32[64]) {\n  %s0: f32[64] = exp(%x)\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("  %s{}: f32[64] = add(%s{}, %x)\n", i + 1, i);
  const Graph g = parse(text + "  return %s8\n}");
  const ValueId target[] = {g.outputs[0]}, wrt[] = {0};
  GraphGradientOptions options;
  options.heads = {1};
  GraphGradient made = gradient(g, target, wrt, options);
  made.graph.outputs = made.gradients;
  made.graph.output_names.clear();
  std::vector<GradientSum> chosen;
  const Graph sums = gradient_sums(made.graph, &chosen);
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].form, "add-to") << "the piece that comes through exp is a product";
  EXPECT_EQ(chosen[1].form, "add_n");
  EXPECT_EQ(chosen[1].pieces, 8) << "the head gradient, again and again";
  const std::vector<Tensor> inputs = stand_ins(sums, 0, 2, 1);
  EXPECT_TRUE(bit_equal(run_eagerly(made.graph, inputs, {}).outputs[0], run_eagerly(sums, inputs, {}).outputs[0]));
  EXPECT_LE(make_plan(sums).peak_bytes, make_plan(made.graph).peak_bytes);
}

// The pass must not raise the peak of any model's step, nor change a bit of it.
TEST(GradientSums, OfModelsTakeNoMoreMemory) {
  for (const char* model : {"mlp", "cnn", "rnn_cell", "mlp_attention"}) {
    SCOPED_TRACE(model);
    const Captured c = record_model(*find_model(model), {.batch = 2});
    const Graph sums = gradient_sums(c.graph);
    EXPECT_LE(make_plan(sums).peak_bytes, make_plan(c.graph).peak_bytes);
    const EagerResult a = run_eagerly(c.graph, c.inputs, c.state), b = run_eagerly(sums, c.inputs, c.state);
    for (std::size_t i = 0; i < a.outputs.size(); ++i) EXPECT_TRUE(bit_equal(a.outputs[i], b.outputs[i]));
    for (std::size_t i = 0; i < a.state.size(); ++i) EXPECT_TRUE(bit_equal(a.state[i], b.state[i]));
  }
}

// Each gradient piece of a weight dies as soon as it is added. With 1000 uses of the weight, the peak grows only by the
// values that the steps keep.
TEST(GraphConformance, W10_PiecesOfOneWeightDieEarly) {
  const auto peak_of = [](int steps) {
    std::string text = "graph g(%h0: f32[1,8]) state(%w: f32[8,8]) {\n";
    for (int i = 0; i < steps; ++i)
      text += fmt::format("  %p{0}: f32[1,8] = matmul(%h{0}, %w)\n  %h{1}: f32[1,8] = tanh(%p{0})\n", i, i + 1);
    const Graph g = parse(text + fmt::format("  return %h{}\n}}", steps));
    const ValueId target[] = {g.outputs[0]}, wrt[] = {1};
    GraphGradient made = gradient(g, target, wrt);
    made.graph.outputs = {made.gradients[0]};
    made.graph.output_names.clear();
    return make_plan(made.graph, {.find_floor = false}).peak_bytes;
  };
  const std::int64_t kept = 64;  // the bytes of h of one step, padded
  EXPECT_LE(peak_of(1000), peak_of(10) + 990 * kept + 2 * 256) << "256 bytes: one piece";
}

}  // namespace
}  // namespace tapedeck
