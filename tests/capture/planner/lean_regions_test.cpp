// Bodies of loops and branches take fewer bytes under a budget: they compute values again, and loops in them keep less.
#include <tapedeck/capture/file/file.h>

#include <tapedeck/tests/capture/planner/loop_programs.h>

#include <cstdint>
#include <string>

namespace tapedeck::testing {
namespace {

constexpr std::int64_t kBatch = 32, kWidth = 32;
constexpr const char* kLeaner = "bytes of workspace";

// Eight layers, whose gradient reads two values of each.
Tensor layers(Tensor h, const Tensor& w) {
  for (int i = 0; i < 8; ++i) h = tanh(matmul(h, w) * sigmoid(h));
  return h;
}

Recorded loop_of_layers() {
  return recorded(
      [](const Tensors& in) {
        LoopOptions options;
        options.max_trips = 4;
        options.checkpoint_every = 1;
        const auto pass = [&](const Tensors& c) { return Tensors{layers(c[0], in[1])}; };
        return with_gradients(sum(scan(pass, {in[0]}, {}, {}, options).carried[0]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kWidth, kWidth}, 2)});
}

TEST(LeanRegions, TheBodyOfALoopComputesAgainWhatItsGradientReads) {
  const Recorded r = loop_of_layers();
  EXPECT_GE(expect_good_at_all_budgets(r, kLeaner), 3u);
  const Plan keeps = make_plan(r.graph);
  EXPECT_LT(plan_for(r.graph, 1).floor_bytes, keeps.peak_bytes * 6 / 10);
}

TEST(LeanRegions, ABranchComputesAgainWhatItsGradientReads) {
  const Recorded r = recorded(
      [](const Tensors& in) {
        const auto deep = [&](const Tensors& c) { return Tensors{layers(c[0], in[1])}; };
        const auto flat = [](const Tensors& c) { return Tensors{c[0] * 2.0}; };
        return with_gradients(sum(cond(less(sum(in[0]), 1e6), deep, flat, {in[0]})[0]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kWidth, kWidth}, 2)});
  EXPECT_GE(expect_good_at_all_budgets(r, kLeaner), 2u);
}

// The outer loop keeps every carried value. The inner one keeps stacks, inside of the outer one's gradient.
TEST(LeanRegions, ALoopInTheBodyOfALoopKeepsLess) {
  const Recorded r = recorded(
      [](const Tensors& in) {
        LoopOptions outer, inner;
        outer.max_trips = 3;
        outer.checkpoint_every = 1;
        inner.max_trips = 16;
        const auto step = [&](const Tensors& d) { return Tensors{tanh(matmul(d[0], in[1]) * sigmoid(d[0]))}; };
        const auto pass = [&](const Tensors& c) { return scan(step, c, {}, {}, inner).carried; };
        return with_gradients(sum(scan(pass, {in[0]}, {}, {}, outer).carried[0]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kWidth, kWidth}, 2)});
  EXPECT_GE(expect_good_at_all_budgets(r, kLeaner), 2u);
  EXPECT_FALSE(reasons_with(plan_for(r.graph, 1), "loops in it keep less").empty());
}

// Loops in loops in loops are not searched at every level, which would take longer with each of them.
TEST(LeanRegions, LoopsInManyLoopsReplayUnderBudgets) {
  const Recorded r = recorded(
      [](const Tensors& in) {
        const auto nest = [&](const auto& self, const Tensor& h, int depth) -> Tensor {
          if (depth == 0) return tanh(matmul(h, in[1]));
          LoopOptions options;
          options.max_trips = 3;
          options.checkpoint_every = depth % 2;
          return scan([&](const Tensors& c) { return Tensors{self(self, c[0], depth - 1)}; }, {h}, {}, {}, options).carried[0];
        };
        return with_gradients(sum(nest(nest, in[0], 4)), in);
      },
      {numbers({8, 8}, 1), numbers({8, 8}, 2)});
  expect_good_at_all_budgets(r, kLeaner, 3);
}

TEST(LeanRegions, TheDecisionSaysWhatItSavesAndCosts) {
  const Recorded r = loop_of_layers();
  const Plan keeps = make_plan(r.graph);
  const Plan plan = plan_for(r.graph, keeps.peak_bytes * 3 / 4);
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_NE(plan.decisions[0].reason.find("a run inside of this loop_grad takes"), std::string::npos)
      << plan.decisions[0].reason;
  EXPECT_EQ(plan.decisions[0].bytes, keeps.peak_bytes - plan.peak_bytes);
  EXPECT_NEAR(plan.decisions[0].cost_us, plan.cost_us - plan.keep_all_cost_us, 1e-6);
}

TEST(LeanRegions, AStoredPlanReplays) {
  const Recorded r = loop_of_layers();
  const Plan plan = plan_for(r.graph, plan_for(r.graph, 1).floor_bytes);
  ASSERT_FALSE(reasons_with(plan, kLeaner).empty());
  PrintOptions all;
  all.max_inline_constant = 1 << 20;
  const Plan back = parse_plan(plan_to_json(plan), parse(print(plan.graph, all)));
  EXPECT_EQ(back.peak_bytes, plan.peak_bytes);
  EXPECT_EQ(check_plan(back), std::vector<std::string>());
  expect_replays(back, r);
}

TEST(LeanRegions, StrategiesThatWorkForNoBudgetLeaveRegionsAlone) {
  const Recorded r = loop_of_layers();
  for (const Strategy strategy : {Strategy::none, Strategy::regions})
    EXPECT_TRUE(reasons_with(plan_for(r.graph, 1, strategy), kLeaner).empty());
}

}  // namespace
}  // namespace tapedeck::testing
