// The model registry, and every model in it: recorded twice alike, trainable, abstract without making data.
#include <tapedeck/capture/models.h>
#include <tapedeck/engine/allocator.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/text.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

TEST(Models, AreFoundByNameInOrder) {
  const std::vector<Model> models = all_models();
  ASSERT_FALSE(models.empty()) << "the zoo is linked in";
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_TRUE(i == 0 || models[i - 1].name < models[i].name);
    ASSERT_NE(find_model(models[i].name), nullptr);
    EXPECT_FALSE(models[i].doc.empty());
  }
  EXPECT_EQ(find_model("no such model"), nullptr);
  EXPECT_NE(find_model("mlp"), nullptr);
  EXPECT_NE(find_model("cnn"), nullptr);
}

TEST(Models, RecordTheSameGraphEveryTime) {
  for (const Model& model : all_models())
    for (const char* optimizer : {"sgd", "adamw"}) {
      const Captured a = record_model(model, {.batch = 2, .optimizer = optimizer}), b = record_model(model, {.batch = 2, .optimizer = optimizer});
      EXPECT_EQ(print(a.graph), print(b.graph)) << model.name << ' ' << optimizer;
      for (std::size_t i = 0; i < a.state.size(); ++i) EXPECT_TRUE(bit_equal(a.state[i], b.state[i])) << a.state[i].name().view();
      verify(a.graph);
      EXPECT_EQ(a.graph.values[0].type.shape[0], 2);
    }
}

TEST(Models, SeedsChangeTheWeightsAndNotTheGraph) {
  for (const Model& model : all_models()) {
    const Captured a = record_model(model, {.batch = 2, .seed = 1}), b = record_model(model, {.batch = 2, .seed = 2});
    EXPECT_EQ(print(a.graph), print(b.graph));
    EXPECT_FALSE(bit_equal(a.state[0], b.state[0]));
  }
}

TEST(Models, AbstractOnesMakeNoData) {
  for (const Model& model : all_models()) {
    Allocator::host().reset_peak();
    const std::int64_t before = Allocator::host().stats().peak_bytes;
    const Captured captured = record_model(model, {.batch = 100000, .abstract = true});
    EXPECT_LT(Allocator::host().stats().peak_bytes - before, 10000) << model.name;
    EXPECT_EQ(captured.graph.values[0].type.shape[0], 100000);
    EXPECT_FALSE(abstract_mode());
  }
}

TEST(Models, UnknownOptimizerIsAnError) {
  EXPECT_EQ(testing::message_of<UsageError>([] { record_model(*find_model("mlp"), {.optimizer = "sdg"}); }), "unknown optimizer 'sdg': sgd or adamw");
}

}  // namespace
}  // namespace tapedeck
