// Tests the model registry and the options of its models. Every model records the same graph each time, trains every
// parameter, and, recorded abstractly, makes no data.
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <set>

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

// Models whose step is quick to compute. The other models are recorded abstractly here; the tests of the zoo run them at
// small sizes.
std::vector<Model> quick_models() {
  std::vector<Model> models;
  for (const char* name : {"mlp", "cnn", "lenet"}) models.push_back(*find_model(name));
  return models;
}

TEST(Models, RecordTheSameGraphEveryTime) {
  for (const Model& model : quick_models())
    for (const char* optimizer : {"sgd", "adamw"}) {
      const ModelOptions options{.batch = 2, .optimizer = optimizer};
      const Captured a = record_model(model, options), b = record_model(model, options);
      EXPECT_EQ(print(a.graph), print(b.graph)) << model.name << ' ' << optimizer;
      for (std::size_t i = 0; i < a.state.size(); ++i)
        EXPECT_TRUE(bit_equal(a.state[i], b.state[i])) << a.state[i].name().view();
      verify(a.graph);
      EXPECT_EQ(a.graph.values[0].type.shape[0], 2);
    }
}

TEST(Models, SeedsChangeTheWeightsAndNotTheGraph) {
  for (const Model& model : quick_models()) {
    const Captured a = record_model(model, {.batch = 2, .seed = 1}), b = record_model(model, {.batch = 2, .seed = 2});
    EXPECT_EQ(print(a.graph), print(b.graph));
    EXPECT_FALSE(bit_equal(a.state[0], b.state[0]));
  }
}

TEST(Models, AbstractOnesMakeNoData) {
  for (const Model& model : all_models()) {
    Allocator::host().reset_peak();
    const std::int64_t before = Allocator::host().stats().peak_bytes;
    const Captured captured = record_model(model, {.batch = 1000, .abstract = true});
    EXPECT_LT(Allocator::host().stats().peak_bytes - before, 100000) << model.name;
    EXPECT_EQ(captured.graph.values[0].type.shape[0], 1000) << model.name;
    EXPECT_FALSE(abstract_mode());
  }
}

// For every dtype and optimizer: the graph passes the verifier, has one scalar output, and updates every parameter.
TEST(Models, AllRecordAbstractlyAndTrainEveryParameter) {
  for (const Model& model : all_models())
    for (const auto& [dtype, optimizer] : {std::pair("f32", "sgd"), std::pair("bf16", "adamw"), std::pair("f16", "sgd")}) {
      SCOPED_TRACE(model.name + " " + dtype);
      const Graph g = record_model(model, {.dtype = dtype, .optimizer = optimizer, .abstract = true}).graph;
      verify(g);
      ASSERT_EQ(g.outputs.size(), 1u);
      EXPECT_EQ(g.values[g.outputs[0]].type, (Type{DType::f32, {}}));
      std::set<ValueId> updated;
      for (const Update& u : g.updates) updated.insert(u.state);
      for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
        const Value& value = g.values[v];
        EXPECT_TRUE(value.role != Role::parameter || updated.count(v)) << value.name.view();
        EXPECT_TRUE(value.role != Role::parameter || value.type.dtype == DType::f32) << value.name.view();
      }
    }
}

TEST(Models, DefaultsStandForWhatIsNotGiven) {
  const Model model{"net", "", nullptr, {"batch", "width"}, {.batch = 8, .width = 32, .optimizer = "adamw"}};
  const ModelOptions all = with_defaults(model, {}), some = with_defaults(model, {.width = 64, .optimizer = "sgd", .seed = 3});
  EXPECT_EQ(all.batch, 8);
  EXPECT_EQ(all.width, 32);
  EXPECT_EQ(all.image, 0);
  EXPECT_EQ(all.dtype, "f32");
  EXPECT_EQ(all.optimizer, "adamw");
  EXPECT_EQ(some.batch, 8);
  EXPECT_EQ(some.width, 64);
  EXPECT_EQ(some.optimizer, "sgd");
  EXPECT_EQ(some.seed, 3u);
}

TEST(Models, OptionsThatMakeNoSenseAreErrors) {
  const Model model{"net", "", nullptr, {"batch", "width"}, {.batch = 8, .width = 32}};
  const auto mistake = [&](const ModelOptions& given) {
    return testing::message_of<UsageError>([&] { with_defaults(model, given); });
  };
  EXPECT_EQ(mistake({.image = 32}), "model net takes no image; it takes batch, width");
  EXPECT_EQ(mistake({.seq = 32}), "model net takes no seq; it takes batch, width");
  EXPECT_EQ(mistake({.layers = 1}), "model net takes no layers; it takes batch, width");
  EXPECT_EQ(mistake({.dtype = "bf16"}), "model net takes no dtype; it takes batch, width");
  EXPECT_EQ(mistake({.batch = -1}), "model net: batch must be at least 1, not -1");
}

TEST(Models, UnknownOptimizersAndDtypesAreErrors) {
  const auto mistake = [](const ModelOptions& given) {
    return testing::message_of<UsageError>([&] { record_model(*find_model("mlp"), given); });
  };
  EXPECT_EQ(mistake({.optimizer = "sdg"}), "unknown optimizer 'sdg': sgd or adamw");
  EXPECT_EQ(mistake({.dtype = "f64"}), "unknown dtype 'f64': f32 or f16 or bf16");
}

}  // namespace
}  // namespace tapedeck
