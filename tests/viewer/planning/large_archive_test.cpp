// Tests that the archive of a large graph holds few plans, because each is as large as its graph.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/planning/plan_archive.h>

#include <gtest/gtest.h>

namespace tapedeck::viewer {
namespace {

int held(const PlanArchive& archive, std::int64_t budgets) {
  int count = 0;
  for (std::int64_t budget = -1; budget < budgets; ++budget) count += archive.find(budget) ? 1 : 0;
  return count;
}

TEST(PlanArchive, HoldsFewerPlansOfALargerGraphAndAlwaysTheLastOneAndThatWithoutABudget) {
  const auto model = PlanModel::of(make_plan(parse(training_graph(2)), {}));
  for (const auto& [nodes, most] : {std::pair<std::size_t, int>{100'000, 8}, {250'000, 4}, {1'562'500, 2}}) {
    PlanArchive archive(nodes);
    constexpr std::int64_t kBudgets = 12;
    for (std::int64_t budget = -1; budget < kBudgets; ++budget) {
      archive.put(budget, model);
      EXPECT_EQ(archive.find(budget), model);
    }
    EXPECT_EQ(held(archive, kBudgets), most) << nodes;
    EXPECT_EQ(archive.find(-1), model);
    EXPECT_EQ(archive.find(kBudgets - 1), model);
  }
}

}  // namespace
}  // namespace tapedeck::viewer
