// Tests what must hold for each of the strategies that read the notes on phases: sound plans, exact live peaks, exact costs,
// equal bits, the same choices every time, and an end when they are cancelled.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/facts/unit_costs.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

constexpr const char* kNamed[] = {"binomial", "echo", "mincut", "mirror", "sqrt"};

class NamedStrategies : public ::testing::TestWithParam<const char*> {};

TEST_P(NamedStrategies, IsAskedByAutoInGraphsOfUpToALimitButNotForDrafts) {
  const StrategyEntry& strategy = strategy_entry(GetParam());
  EXPECT_EQ(strategy.taken_for, TakenFor::budget);
  for (const LookFor look_for : {LookFor::floor, LookFor::budgets}) {
    EXPECT_TRUE(is_in_auto(strategy, kMostNodesForAll, look_for));
    EXPECT_FALSE(is_in_auto(strategy, kMostNodesForAll + 1, look_for));
  }
  EXPECT_FALSE(is_in_auto(strategy, 1, LookFor::draft));
}

// What a strategy that does not read costs chooses for the floor serves budgets, too.
TEST_P(NamedStrategies, ChoosesTheSameAtOtherCostsIfItSaysSo) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    test::Chosen real(test::random_training(seed, 20 + static_cast<int>(seed)), GetParam());
    const Facts unit = at_unit_costs(real.facts);
    const bool same = strategy_entry(GetParam()).choose(unit, {}).journal == real.choices.journal;
    EXPECT_TRUE(same || strategy_entry(GetParam()).reads_costs) << seed;
    recomputing += !real.choices.journal.empty();
  }
  EXPECT_GT(recomputing, 5);
}

TEST_P(NamedStrategies, PointsAreExactOnRandomPrograms) {
  std::size_t decisions = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    decisions += test::expect_exact_points(test::RandomProgram(seed).graph(), GetParam());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(decisions, 10u) << "the programs give it something to choose";
}

TEST_P(NamedStrategies, PointsAreExactOnTrainingSteps) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    test::expect_exact_points(test::random_training(seed, 1 + static_cast<int>(seed)), GetParam());
    if (HasFatalFailure()) return;
  }
}

TEST_P(NamedStrategies, PointsAreExactOnChains) {
  for (int layers : {1, 2, 3, 12, 40}) test::expect_exact_points(test::chain(layers, 1000), GetParam());
}

TEST_P(NamedStrategies, ReplaysHaveTheBitsOfEagerRuns) {
  int recomputed = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    recomputed += test::expect_equal_replays(test::random_training(seed, 12 + static_cast<int>(seed)), GetParam());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(recomputed, 0) << "some replays ran clones";
}

// Layers of a product, batch norm and tanh. The statistics are state, and backward reads what lies between the layers.
Graph batch_norms(int layers) {
  std::string text = "graph norms(%h0: f32[4,3,8,8]) state(%sum: f32[3] [role=statistic], %w: f32[8,8]) {\n", sum = "%sum";
  for (int i = 1; i <= layers; ++i) {
    text += fmt::format("  %p{0}: f32[4,3,8,8] = matmul(%h{1}, %w)\n", i, i - 1);
    text += fmt::format("  %y{0}: f32[4,3,8,8], %m{0}: f32[3], %v{0}: f32[3] = batch_norm(%p{0})\n", i);
    text += fmt::format("  %h{0}: f32[4,3,8,8] = tanh(%y{0})\n  %s{0}: f32[3] = add({1}, %v{0})\n", i, sum);
    sum = fmt::format("%s{}", i);
  }
  text += fmt::format("  %g{0}: f32[4,3,8,8] = neg(%h{0}) [phase=backward]\n", layers);
  for (int i = layers; i >= 1; --i)
    text += fmt::format(
        "  %a{0}: f32[4,3,8,8] = mul(%g{0}, %h{0}) [phase=backward]\n"
        "  %b{0}: f32[4,3,8,8] = sub(%a{0}, %y{0}) [phase=backward]\n"
        "  %g{1}: f32[4,3,8,8] = mul(%b{0}, %p{0}) [phase=backward]\n",
        i, i - 1);
  return parse(text + fmt::format("  return %g0\n  update %sum = %s{}\n}}\n", layers), "norms");
}

// The statistics are updated once, however often the nodes run that make them.
TEST_P(NamedStrategies, BatchNormUpdatesItsStatisticsOnce) {
  EXPECT_GT(test::expect_equal_replays(batch_norms(20), GetParam()), 0);
}

// As a user asks for it: a plan by the name of the strategy, under a budget that it can only meet by recomputing.
TEST_P(NamedStrategies, MeetsABudgetInAReplay) {
  const Graph graph = batch_norms(12);
  PlanOptions options;
  options.strategy = strategy_named(GetParam());
  options.budget_percent = 90;
  const Plan plan = make_plan(graph, options);
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_EQ(plan.strategy, GetParam());
  EXPECT_GT(plan.recomputed_nodes, 0);
  EXPECT_LE(plan.peak_bytes, plan.budget_bytes);
  test::expect_equal_steps(graph, plan);
}

TEST_P(NamedStrategies, ChoosesTheSameEveryTime) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Graph graph = test::RandomProgram(seed).graph();
    const test::Chosen a(graph, GetParam()), b(graph, GetParam());
    ASSERT_EQ(a.choices.decisions.size(), b.choices.decisions.size());
    for (std::size_t i = 0; i < a.choices.decisions.size(); ++i) {
      EXPECT_EQ(a.choices.decisions[i].value, b.choices.decisions[i].value);
      EXPECT_EQ(a.choices.decisions[i].reason, b.choices.decisions[i].reason);
    }
    ASSERT_EQ(a.choices.journal.size(), b.choices.journal.size());
  }
}

TEST_P(NamedStrategies, CanBeCancelled) { test::expect_cancellable(test::chain(40, 1000), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Strategies, NamedStrategies, ::testing::ValuesIn(kNamed),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tapedeck
