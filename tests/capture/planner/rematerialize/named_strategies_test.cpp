// Tests what must hold for each of the strategies that only a plan that names them asks: sound plans, exact live peaks, exact
// costs, equal bits, the same choices every time, and an end when they are cancelled.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

constexpr const char* kNamed[] = {"binomial", "echo", "mincut", "mirror", "sqrt"};

class NamedStrategies : public ::testing::TestWithParam<const char*> {};

TEST_P(NamedStrategies, IsNotAskedByAuto) {
  EXPECT_FALSE(strategy_entry(GetParam()).automatic);
  EXPECT_EQ(strategy_entry(GetParam()).taken_for, TakenFor::budget);
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
