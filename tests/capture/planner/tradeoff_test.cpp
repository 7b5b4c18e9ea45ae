// Tests the curves of tradeoff() against plans made one by one, and what is left of them when it is cancelled.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/tradeoff.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

TEST(Tradeoff, HasThePlanOfEveryStrategyAtEveryBudget) {
  const Graph graph = test::there_and_back(3);
  TradeoffOptions options;
  options.points = 3;
  options.plan.alignment = 1;
  const Tradeoff found = tradeoff(graph, options);
  EXPECT_TRUE(found.complete);
  ASSERT_EQ(found.curves.size(), every_strategy().size());
  EXPECT_EQ(found.curves[0].name, "auto");
  EXPECT_EQ(found.curves[1].name, "none");
  int recomputing = 0;
  for (const TradeoffCurve& curve : found.curves) {
    ASSERT_EQ(curve.points.size(), 3u) << curve.name;
    EXPECT_EQ(curve.points.front().budget_bytes, found.floor_bytes);
    EXPECT_EQ(curve.points.back().budget_bytes, found.keep_all_peak_bytes);
    for (const TradeoffPoint& point : curve.points) {
      PlanOptions how = options.plan;
      how.strategy = curve.strategy;
      how.budget = point.budget_bytes;
      const Plan plan = make_plan(graph, how);
      EXPECT_EQ(point.feasible, plan.feasible);
      EXPECT_EQ(point.peak_bytes, plan.peak_bytes);
      EXPECT_EQ(point.cost_us, plan.cost_us);
      EXPECT_EQ(point.cost_ratio, plan.recompute_cost_ratio());
      EXPECT_EQ(point.cost_lower_bound_us, plan.cost_lower_bound_us);
      EXPECT_EQ(point.bound_from, plan.bound_from);
      EXPECT_EQ(point.recomputed_nodes, plan.recomputed_nodes);
      EXPECT_EQ(found.keep_all_cost_us, plan.keep_all_cost_us);
      recomputing += point.feasible && point.recomputed_nodes > 0;
    }
  }
  EXPECT_GT(recomputing, 4);
  EXPECT_FALSE(found.curves[1].points[0].feasible);  // none keeps everything
}

TEST(Tradeoff, HasOnePointWhereNothingCanBeSaved) {
  TradeoffOptions options;
  options.strategies = {Strategy::greedy};
  const Tradeoff found = tradeoff(test::chain(1, 100), options);
  ASSERT_EQ(found.curves.size(), 1u);
  EXPECT_EQ(found.curves[0].name, "greedy");
  EXPECT_EQ(found.floor_bytes, found.keep_all_peak_bytes);
  EXPECT_EQ(found.curves[0].points.size(), 1u);
}

// The flag goes up after some of the points; what was found until then is equal to the whole answer.
TEST(Tradeoff, KeepsWhatWasFoundWhenItIsCancelled) {
  const Graph graph = test::there_and_back(3);
  TradeoffOptions options;
  options.points = 4;
  options.strategies = {Strategy::automatic, Strategy::none, Strategy::greedy};
  const std::string whole = tradeoff_csv(tradeoff(graph, options));
  int most = 0;
  std::vector<double> told;
  options.plan.progress = [&](double done) { told.push_back(done); };
  tradeoff(graph, options);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 1.0);
  constexpr std::size_t stride = test::stride(6);  // the last call is tried in any case
  for (std::size_t calls = (told.size() - 1) % stride + 1; calls <= told.size(); calls += stride) {
    std::atomic<bool> cancel = false;
    std::size_t seen = 0;
    options.plan.cancel = &cancel;
    options.plan.progress = [&](double) { cancel = ++seen >= calls; };
    const Tradeoff part = tradeoff(graph, options);
    EXPECT_EQ(part.complete, calls >= told.size() - 1);  // the last two calls come after the last point
    for (const TradeoffCurve& curve : part.curves) EXPECT_FALSE(curve.points.empty());
    const std::string text = tradeoff_csv(part);
    EXPECT_EQ(whole.substr(0, text.size()), text);
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_GE(lines, most);
    most = std::max(most, lines);
  }
  EXPECT_EQ(most, static_cast<int>(std::count(whole.begin(), whole.end(), '\n')));
}

TEST(Tradeoff, CancelledAtOnceItHasNoCurve) {
  const std::atomic<bool> cancel = true;
  TradeoffOptions options;
  options.plan.cancel = &cancel;
  const Tradeoff found = tradeoff(test::chain(4, 100), options);
  EXPECT_FALSE(found.complete);
  EXPECT_TRUE(found.curves.empty());
}

TEST(Tradeoff, RefusesOptionsThatMakeNoSense) {
  TradeoffOptions options;
  options.points = 1;
  EXPECT_THROW(tradeoff(test::chain(2, 10), options), UsageError);
  options.points = 4;
  options.plan.budget = 10;
  EXPECT_THROW(tradeoff(test::chain(2, 10), options), UsageError);
  options.plan.budget = -1;
  options.plan.strategy = Strategy::greedy;
  EXPECT_THROW(tradeoff(test::chain(2, 10), options), UsageError);
}

TEST(Tradeoff, WritesALineForEachPoint) {
  Tradeoff t;
  t.keep_all_cost_us = 10;
  t.curves = {{Strategy::greedy, "greedy", {{100, true, 90, 12, 1.2, 11, "", 3}, {50, false, 60, 15, 1.5, 0, "", 4}}}};
  EXPECT_EQ(tradeoff_csv(t),
            "strategy,budget_bytes,feasible,peak_bytes,cost_us,cost_ratio,cost_lower_bound_us,bound_ratio,recomputed_nodes\n"
            "greedy,100,1,90,12,1.2,11,1.1,3\n"
            "greedy,50,0,60,15,1.5,,,4\n");
}

}  // namespace
}  // namespace tapedeck
