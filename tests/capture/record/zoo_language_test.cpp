// Tests the language models of the zoo: numbers of parameters against arithmetic by hand, properties of the models, and
// replays against eager runs.
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

// Sizes that are small enough to compute.
struct Small {
  const char* model;
  ModelOptions options;
  std::int64_t words;  // size of the vocabulary; 0: not a language model
};
const Small kSmall[] = {
    {"gpt2", {.batch = 2, .seq = 5, .layers = 2, .width = 16}, 50257},
    {"transformer_encoder", {.batch = 2, .seq = 9, .layers = 2, .width = 16}, 30522},
    {"lstm_lm", {.batch = 3, .seq = 4, .layers = 2, .width = 8}, 10000},
    {"lstm_lm_untied", {.batch = 3, .seq = 4, .layers = 2, .width = 8}, 10000},
    {"gru_seq2seq_attention", {.batch = 3, .seq = 4, .layers = 2, .width = 8}, 8000},
    {"mlp_attention", {.batch = 2, .seq = 3, .layers = 2, .width = 4}, 0},
    {"rnn_cell", {.batch = 2, .width = 4}, 0},
};

Captured record(const char* model, const ModelOptions& options) {
  const Model* found = find_model(model);
  if (!found) throw UsageError(std::string("no model ") + model);
  return record_model(*found, options);
}

Captured record_abstract(const char* model, ModelOptions options = {}) {
  options.abstract = true;
  return record(model, options);
}

std::int64_t parameters(const Graph& g) {
  std::int64_t count = 0;
  for (const Value& v : g.values)
    if (v.role == Role::parameter) count += v.type.shape.numel();
  return count;
}

int count_nodes(const Graph& g, const std::string& op) {
  int count = 0;
  for (const Node& n : g.nodes) count += n.op->name == op;
  return count;
}

void expect_replay_is_eager(const Captured& captured, const Plan& plan) {
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  Executor executor(plan);
  std::vector<Tensor> state = captured.state;
  set_all(executor, captured.inputs, state);
  for (int step = 0; step < 3; ++step) {
    const EagerResult eager = run_eagerly(captured.graph, captured.inputs, state);
    executor.run();
    expect_equal(executor, eager, captured.graph.name.str() + ", step " + std::to_string(step));
    state = eager.state;
  }
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
}

// The loss of the captured step with another tensor as input `name`.
double loss_with(const Captured& captured, const std::string& name, const Tensor& value) {
  std::vector<Tensor> inputs = captured.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (captured.graph.values[i].name.str() == name) inputs[i] = value;
  return run_eagerly(captured.graph, inputs, captured.state).outputs[0].item();
}

const Tensor& input_named(const Captured& captured, const std::string& name) {
  for (std::size_t i = 0; i < captured.inputs.size(); ++i)
    if (captured.graph.values[i].name.str() == name) return captured.inputs[i];
  throw UsageError("no input " + name);
}

TEST(ZooLanguage, Gpt2IsTheSmallOne) { EXPECT_EQ(parameters(record_abstract("gpt2").graph), 124439808); }

// The parts: embeddings (30522 + 512 + 2) x 768 and a norm; 12 blocks; a norm; a layer with a norm; a bias for every word.
TEST(ZooLanguage, TheEncoderIsOfTheBaseSize) {
  const std::int64_t block = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768;
  EXPECT_EQ(parameters(record_abstract("transformer_encoder").graph),
            (30522 + 512 + 2) * 768 + 1536 + 12 * block + 1536 + 768 * 768 + 768 + 1536 + 30522);
}

TEST(ZooLanguage, TyingSavesTheOutputLayer) {
  const auto size = [](const char* model) { return parameters(record_abstract(model).graph); };
  EXPECT_EQ(size("lstm_lm"), 10000 * 650 + 2 * (2 * 650 * 2600 + 2 * 2600) + 10000);
  EXPECT_EQ(size("lstm_lm_untied") - size("lstm_lm"), 10000 * 650);
}

TEST(ZooLanguage, AllRecordAtTheirDefaultSizeWithoutData) {
  for (const Small& s : kSmall)
    for (const char* dtype : {"f32", "bf16"}) {
      const Captured captured = record_abstract(s.model, {.dtype = dtype});
      EXPECT_NO_THROW(verify(captured.graph)) << s.model << ' ' << dtype;
      for (const CaptureReport::Item& constant : captured.report.constants)
        EXPECT_EQ(constant.type.shape.numel(), 1) << s.model << ' ' << constant.name;
      EXPECT_EQ(captured.graph.values[0].type.shape[0], find_model(s.model)->defaults.batch) << s.model;
    }
}

TEST(ZooLanguage, SmallOnesReplayAsTheyRunEagerly) {
  for (const Small& s : kSmall) {
    const Captured captured = record(s.model, s.options);
    expect_replay_is_eager(captured, make_plan(captured.graph, {.find_floor = false}));
    PlanSearch search(captured.graph);
    expect_replay_is_eager(captured, search.plan(search.floor()));
  }
}

TEST(ZooLanguage, HalfPrecisionReplaysToo) {
  for (const Small& s : kSmall) {
    ModelOptions options = s.options;
    options.dtype = "bf16";
    const Captured captured = record(s.model, options);
    expect_replay_is_eager(captured, make_plan(captured.graph, {.find_floor = false}));
  }
}

// An untrained net gives every word the same probability.
TEST(ZooLanguage, LossesStartAtThatOfGuessing) {
  for (const Small& s : kSmall) {
    if (s.words == 0) continue;
    const Captured captured = record(s.model, s.options);
    const double loss = run_eagerly(captured.graph, captured.inputs, captured.state).outputs[0].item();
    EXPECT_NEAR(loss, std::log(static_cast<double>(s.words)), 0.3) << s.model;
  }
}

// A second step on the same data starts from the state that the first step left.
TEST(ZooLanguage, LstmCarriesItsState) {
  const Captured captured = record("lstm_lm", {.batch = 3, .seq = 4, .layers = 2, .width = 8});
  const std::vector<std::string>& mutated = captured.report.mutated;
  for (const char* name : {"h", "c"}) EXPECT_EQ(std::count(mutated.begin(), mutated.end(), name), 1) << name;
}

// The encoder reads padding, but attention ignores it. The padding of the decoder's target does not change the loss.
TEST(ZooLanguage, TranslationDoesNotSeePadding) {
  const Captured captured = record("gru_seq2seq_attention", {.batch = 3, .seq = 6, .layers = 1, .width = 8});
  const double loss = loss_with(captured, "", {});
  const Tensor& target = input_named(captured, "target");
  const Tensor padding = equal(target, 0);
  ASSERT_TRUE(max(cast(padding, DType::i32)).item() == 1) << "a target shorter than its row";
  EXPECT_EQ(loss_with(captured, "target", where(padding, 17, target)), loss);
  EXPECT_NE(loss_with(captured, "target", where(padding, target, 17)), loss);
}

// Only the masked words have labels.
TEST(ZooLanguage, TheEncoderTellsMaskedWordsOnly) {
  const Captured captured = record("transformer_encoder", {.batch = 2, .seq = 9, .layers = 1, .width = 8});
  const std::vector<std::int32_t> tokens = input_named(captured, "tokens").to_vector<std::int32_t>();
  const std::vector<std::int32_t> labels = input_named(captured, "labels").to_vector<std::int32_t>();
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(labels[i] != -100, i % 9 % 7 == 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i] == 103, labels[i] != -100);
}

TEST(ZooLanguage, ALongerSequenceTakesMorePositions) {
  EXPECT_EQ(parameters(record_abstract("gpt2", {.seq = 4096}).graph), 124439808 + (4096 - 1024) * 768);
}

TEST(ZooLanguage, AWidthThatHeadsDoNotDivideIsAnError) {
  EXPECT_EQ(testing::message_of<UsageError>([] { record_abstract("gpt2", {.width = 18}); }),
            "model gpt2: a width of 18 does not fall into four heads");
}

// The sum under the tanh is as large as the tanh itself, so computing either of them again saves no bytes.
TEST(ZooLanguage, RnnCellHasNothingToRecompute) {
  const Plan plan = make_plan(record_abstract("rnn_cell").graph);
  EXPECT_EQ(plan.floor_bytes, plan.keep_all_peak_bytes);
}

// The rows of all slots can be computed again from a single row of the state.
TEST(ZooLanguage, MlpAttentionRecomputesItsRows) {
  const Graph graph = record_abstract("mlp_attention").graph;
  PlanSearch search(graph);
  const Plan all = search.plan(search.keep_all_peak()), tight = search.plan(search.floor());
  EXPECT_LT(search.floor(), search.keep_all_peak());
  EXPECT_GT(count_nodes(tight.graph, "tanh"), count_nodes(all.graph, "tanh"));
}

}  // namespace
}  // namespace tapedeck
