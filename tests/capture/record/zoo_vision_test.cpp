// Tests the vision models of the zoo: published numbers of parameters, options that change the graph, and replays of small
// models against eager runs, bit for bit.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <cmath>

namespace tapedeck {
namespace {

Graph types_of(const char* model, ModelOptions options = {}) {
  options.abstract = true;
  return record_model(*find_model(model), options).graph;
}

std::int64_t parameter_elements(const Graph& g) {
  std::int64_t count = 0;
  for (const Value& v : g.values)
    if (v.role == Role::parameter) count += v.type.numel();
  return count;
}

// Numbers of trainable elements from the papers or the reference implementations.
TEST(ZooVision, ParametersAreThePublishedOnes) {
  EXPECT_EQ(parameter_elements(types_of("lenet")), 61'706);
  EXPECT_EQ(parameter_elements(types_of("vgg16")), 138'357'544);
  EXPECT_EQ(parameter_elements(types_of("vgg19")), 143'667'240);
  EXPECT_EQ(parameter_elements(types_of("resnet18")), 11'689'512);
  EXPECT_EQ(parameter_elements(types_of("resnet50")), 25'557'032);
  EXPECT_EQ(parameter_elements(types_of("resnet152")), 60'192'808);
  EXPECT_EQ(parameter_elements(types_of("mobilenet_v1")), 4'231'976);
  EXPECT_EQ(parameter_elements(types_of("mobilenet_v2")), 3'504'872);
  EXPECT_EQ(parameter_elements(types_of("densenet121")), 7'978'856);
  EXPECT_EQ(parameter_elements(types_of("squeezenet")), 1'235'496);
  EXPECT_EQ(parameter_elements(types_of("unet")), 31'037'698);
  EXPECT_EQ(parameter_elements(types_of("fcn8")), 134'489'759);
  EXPECT_EQ(parameter_elements(types_of("vit_b16")), 86'567'656);
}

// Thirteen convolutions with a batch norm each, and their mirror image. The last convolution has a bias and no batch norm.
TEST(ZooVision, SegnetIsSymmetric) {
  const std::int64_t down =
      9 * (3 * 64 + 64 * 64 + 64 * 128 + 128 * 128 + 128 * 256 + 2 * 256 * 256 + 256 * 512 + 5 * 512 * 512);
  const std::int64_t down_norms = 2 * (2 * 64 + 2 * 128 + 3 * 256 + 6 * 512);
  const std::int64_t up =
      9 * (5 * 512 * 512 + 512 * 256 + 2 * 256 * 256 + 256 * 128 + 128 * 128 + 128 * 64 + 64 * 64 + 64 * 21) + 21;
  const std::int64_t up_norms = 2 * (5 * 512 + 3 * 256 + 2 * 128 + 2 * 64);
  EXPECT_EQ(parameter_elements(types_of("segnet")), down + down_norms + up + up_norms);
}

TEST(ZooVision, OptionsReachTheGraph) {
  const Graph resnet = types_of("resnet18", {.batch = 3, .image = 64, .width = 8});
  EXPECT_EQ(resnet.values[0].type, (Type{DType::f32, {3, 3, 64, 64}}));
  EXPECT_EQ(resnet.values[1].type, (Type{DType::i32, {3}}));
  EXPECT_LT(parameter_elements(resnet), 11'689'512 / 32);
  const Graph unet = types_of("unet", {.batch = 1, .image = 48, .width = 4});
  EXPECT_EQ(unet.values[1].type, (Type{DType::i32, {1, 48, 48}}));
  const Graph vit = types_of("vit_b16", {.image = 32, .layers = 2, .width = 128});
  EXPECT_EQ(parameter_elements(vit),
            3 * 16 * 16 * 128 + 128 + 128 + 5 * 128 + 2 * (12 * 128 * 128 + 13 * 128) + 2 * 128 + 128 * 1000 + 1000);
}

// Convolutions and matrix products run in the chosen dtype. The parameters stay f32.
TEST(ZooVision, LowPrecisionReachesTheConvolutions) {
  const Graph g = types_of("resnet18", {.image = 32, .dtype = "bf16"});
  int convolutions = 0;
  for (const Node& n : g.nodes)
    if (std::string(n.op->name) == "conv2d") {
      ++convolutions;
      EXPECT_EQ(g.output_types(n)[0].dtype, DType::bf16);
    }
  EXPECT_EQ(convolutions, 20);
}

TEST(ZooVision, ImagesThatDoNotFitAreErrors) {
  const auto mistake = [](const char* model, const ModelOptions& o) {
    return testing::message_of<UsageError>([&] { types_of(model, o); });
  };
  EXPECT_EQ(mistake("unet", {.image = 100}), "model unet: image must be a multiple of 16, not 100");
  EXPECT_EQ(mistake("segnet", {.image = 48}), "model segnet: image must be a multiple of 32, not 48");
  EXPECT_EQ(mistake("fcn8", {.image = 225}), "model fcn8: image must be a multiple of 32, not 225");
  EXPECT_EQ(mistake("vit_b16", {.image = 8}), "model vit_b16: image must be a multiple of 16, not 8");
  EXPECT_EQ(mistake("vit_b16", {.width = 100}), "model vit_b16: width must be a multiple of 64, the size of a head, not 100");
}

enum class Budget { floor, none };

Plan plan_at_floor(const Graph& graph) {
  PlanSearch search(graph);
  return search.plan(search.floor());
}

// Replays from the state after the recorded step, and expects the bits of run_eagerly().
void expect_model_replay_is_eager(const char* model, const ModelOptions& options, Budget budget = Budget::floor) {
  const Captured c = record_model(*find_model(model), options);
  const EagerResult eager = run_eagerly(c.graph, c.inputs, c.state);
  EXPECT_TRUE(std::isfinite(eager.outputs[0].item()));
  const Plan plan = budget == Budget::floor ? plan_at_floor(c.graph) : make_plan(c.graph, {.find_floor = false});
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  Executor executor(plan, {.threads = 2});
  set_all(executor, c.inputs, c.state);
  executor.run();
  expect_equal(executor, eager, model);
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
}

TEST(ZooVision, LenetReplays) { expect_model_replay_is_eager("lenet", {.batch = 3}); }
TEST(ZooVision, Resnet18Replays) { expect_model_replay_is_eager("resnet18", {.batch = 2, .image = 32}); }
TEST(ZooVision, Resnet50Replays) {
  expect_model_replay_is_eager("resnet50", {.batch = 2, .image = 32, .width = 8, .optimizer = "adamw"});
}
TEST(ZooVision, MobilenetV1Replays) { expect_model_replay_is_eager("mobilenet_v1", {.batch = 2, .image = 32}); }
TEST(ZooVision, MobilenetV2Replays) { expect_model_replay_is_eager("mobilenet_v2", {.batch = 2, .image = 32}); }
TEST(ZooVision, DensenetReplays) { expect_model_replay_is_eager("densenet121", {.batch = 2, .image = 32}); }
TEST(ZooVision, SqueezenetReplays) { expect_model_replay_is_eager("squeezenet", {.batch = 1, .image = 64}); }
TEST(ZooVision, UnetReplays) { expect_model_replay_is_eager("unet", {.batch = 1, .image = 32, .width = 4}); }
TEST(ZooVision, VitReplays) { expect_model_replay_is_eager("vit_b16", {.batch = 2, .image = 32, .layers = 2, .width = 128}); }
// Plans at the floor of the larger nets take seconds. Resnet18Replays and DensenetReplays have such plans.
TEST(ZooVision, SegnetReplays) { expect_model_replay_is_eager("segnet", {.batch = 1, .image = 32, .width = 4}, Budget::none); }
TEST(ZooVision, HalfPrecisionReplays) {
  expect_model_replay_is_eager("resnet18", {.batch = 2, .image = 32, .width = 8, .dtype = "bf16", .optimizer = "adamw"},
                               Budget::none);
  expect_model_replay_is_eager("densenet121", {.batch = 2, .image = 32, .dtype = "bf16"}, Budget::none);
  expect_model_replay_is_eager("vit_b16", {.batch = 1, .image = 32, .layers = 1, .width = 64, .dtype = "f16"});
}

}  // namespace
}  // namespace tapedeck
