// Tests the choice of a candidate in graphs of so many nodes that few candidates are placed. Most nodes here have a byte and
// change nothing, and no layout is searched, so that planning is quick.
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/engine/seeds.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

constexpr int kLayers = 20, kBetween = 5000;
constexpr int kBudgets = std::max(test::seeds(7), 2);  // between the floor and the peak of keeping all

// Layers forward, a long chain of bytes, and the layers backward.
Graph long_step(unsigned seed) {
  std::mt19937 random(seed);
  const auto node = [&](const std::string& name, const std::string& reads) {
    return fmt::format("%{}: u8[{}] = opaque({}) {{us={}.0}}\n", name, 500 + random() % 1000, reads, 1 + random() % 20);
  };
  std::string text = "graph g(%x: u8[1]) {\n", last = "x";
  for (int i = 0; i < kLayers; ++i, last = fmt::format("a{}", i - 1)) text += node(fmt::format("a{}", i), "%" + last);
  for (int i = 0; i < kBetween; ++i, last = fmt::format("p{}", i - 1))
    text += fmt::format("%p{}: u8[1] = opaque(%{}) {{us=0.5}}\n", i, last);
  for (int i = kLayers - 1; i >= 0; --i, last = fmt::format("g{}", i + 1))
    text += node(fmt::format("g{}", i), fmt::format("%{}, %a{}", last, i));
  return parse(text + "return %g0\n}\n");
}

PlanOptions quick() {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  options.place_work = 0;
  return options;
}

std::vector<std::int64_t> shuffled_budgets(const PlanSearch& search, int count, unsigned seed) {
  std::vector<std::int64_t> budgets;
  for (int i = 0; i <= count; ++i) budgets.push_back(search.floor() + (search.keep_all_peak() - search.floor()) * i / count);
  budgets.push_back(search.keep_all_peak() * 2);
  std::mt19937 random(seed);
  std::shuffle(budgets.begin(), budgets.end(), random);
  return budgets;
}

TEST(CandidateLadder, ALargerBudgetNeverCostsMore) {
  const Graph graph = long_step(1);
  PlanOptions options = quick();
  PlanSearch search(graph, options);
  ASSERT_LT(search.floor(), search.keep_all_peak() / 2);
  std::map<std::int64_t, Plan> plans;
  for (const std::int64_t budget : shuffled_budgets(search, kBudgets, 2)) plans[budget] = search.plan(budget);
  for (const auto& [budget, plan] : plans) {
    EXPECT_TRUE(plan.feasible) << budget;
    EXPECT_LE(plan.peak_bytes, budget);
    EXPECT_TRUE(budget < search.keep_all_peak() || plan.recomputed_nodes == 0) << budget;
  }
  for (auto larger = std::next(plans.begin()); larger != plans.end(); ++larger)
    EXPECT_LE(larger->second.cost_us, std::prev(larger)->second.cost_us) << larger->first;
  EXPECT_GT(plans.begin()->second.cost_us, plans.rbegin()->second.cost_us);
  EXPECT_FALSE(search.plan(search.floor() - 1).feasible);

  // The plan for a budget is the same, whatever other budgets were asked for before it.
  options.budget = std::prev(plans.end(), 4)->first;
  expect_same_plan(make_plan(graph, options), plans.at(options.budget));
}

}  // namespace
}  // namespace tapedeck
