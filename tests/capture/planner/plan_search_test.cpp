// Tests that a PlanSearch answers as make_plan does, whatever it was asked before.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

Plan plan_alone(const Graph& graph, PlanOptions options, std::int64_t budget) {
  options.budget = budget;
  return make_plan(graph, options);
}

void expect_equal(const Plan& a, const Plan& b) {
  EXPECT_EQ(print(a.graph), print(b.graph));
  EXPECT_EQ(a.order, b.order);
  expect_same_plan(a, b);
}

// Budgets from nothing to more than the peak, none, and two of them twice, in random order.
std::vector<std::int64_t> shuffled_budgets_of(const PlanSearch& search, unsigned seed) {
  const std::int64_t floor = search.floor(), peak = search.keep_all_peak();
  std::vector<std::int64_t> budgets = {0, floor - 1, floor, (floor + peak) / 2, (floor + 3 * peak) / 4, peak, peak + 100, -1};
  std::mt19937 random(seed);
  std::shuffle(budgets.begin(), budgets.end(), random);
  budgets.push_back(budgets[0]);
  budgets.push_back(floor);
  return budgets;
}

// Returns the number of plans that recompute.
int expect_plans_as_alone(const Graph& graph, const PlanOptions& options, unsigned seed) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  int recomputing = 0;
  PlanSearch search(graph, options);
  std::map<std::int64_t, Plan> plans;  // some budgets are asked for twice
  for (const std::int64_t budget : shuffled_budgets_of(search, seed)) {
    SCOPED_TRACE(::testing::Message() << "budget " << budget);
    if (!plans.count(budget)) plans[budget] = plan_alone(graph, options, budget);
    const Plan& alone = plans[budget];
    expect_equal(search.plan(budget), alone);
    EXPECT_EQ(search.floor(), alone.floor_bytes);
    EXPECT_EQ(search.keep_all_peak(), alone.keep_all_peak_bytes);
    recomputing += alone.recomputed_nodes > 0;
  }
  return recomputing;
}

#ifdef TAPEDECK_SANITIZED
constexpr unsigned kSearchSeeds = 2;  // this build is several times as slow; the release build runs all seeds
#else
constexpr unsigned kSearchSeeds = 8;
#endif

TEST(PlanSearch, PlansAsMakePlanDoesForEveryBudget) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < kSearchSeeds; ++seed)
    recomputing += expect_plans_as_alone(test::RandomProgram(seed).graph(), {}, seed) +
                   expect_plans_as_alone(test::RandomGraph(seed).make(24), {}, seed);
  PlanOptions options;
  for (unsigned seed = 0; seed < kSearchSeeds; ++seed) {
    options.alignment = seed % 2 ? 1 : -1;
    recomputing += expect_plans_as_alone(test::there_and_back(seed), options, seed);
  }
  EXPECT_GT(recomputing, static_cast<int>(3 * kSearchSeeds));
}

// The plan of each budget, and whether a plan of a larger budget fits the budget and costs less.
void expect_cheapest_known(const std::vector<Plan>& plans) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_LE(plans[i].peak_bytes, plans[i].budget_bytes);
    for (std::size_t larger = i + 1; larger < plans.size(); ++larger) {
      EXPECT_LE(plans[larger].cost_us, plans[i].cost_us) << "the larger budget " << larger << " costs more than budget " << i;
      if (plans[larger].peak_bytes > plans[i].budget_bytes) continue;
      EXPECT_GE(plans[larger].cost_us, plans[i].cost_us) << "the plan of budget " << larger << " fits budget " << i;
    }
  }
}

// In graphs of many nodes, only some layouts are searched for a budget. The plans of other budgets must not depend on these
// layouts, and no plan may get a lower peak by a search that the other budgets do not know of.
TEST(PlanSearch, SearchesForOneBudgetDoNotShowInOthers) {
  constexpr int kBudgets = 24;
  for (unsigned seed = 0; seed < 2; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Graph graph = test::uneven_layers(seed, 20);
    PlanSearch search(graph, {.alignment = 1});
    std::vector<Plan> plans;
    for (int i = 0; i < kBudgets; ++i)
      plans.push_back(search.plan(search.floor() + (search.keep_all_peak() - search.floor()) * i / kBudgets));
    expect_cheapest_known(plans);
    const Plan below = search.plan(search.floor() - 1);
    EXPECT_FALSE(below.feasible);
    EXPECT_EQ(below.peak_bytes, search.floor());
    expect_equal(plans[kBudgets / 2], plan_alone(graph, {.alignment = 1}, plans[kBudgets / 2].budget_bytes));
  }
}

// A draft is made in a fraction of the time: its plans keep their budgets and all rules, a larger budget costs no more, and its
// floor is at or above the floor.
TEST(PlanSearch, ADraftHoldsItsBudgets) {
  int recomputing = 0;
  constexpr unsigned seeds = test::seeds(40);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Graph graph = seed % 2 ? test::there_and_back(seed) : test::RandomProgram(seed).graph();
    PlanSearch draft(graph, {}, SearchEffort::draft);
    const PlanSearch full(graph);
    EXPECT_GE(draft.floor(), full.floor());
    EXPECT_GE(draft.keep_all_peak(), full.keep_all_peak());
    double cost = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= 8; ++i) {
      const std::int64_t budget = draft.floor() + (draft.keep_all_peak() - draft.floor()) * i / 8;
      const Plan plan = draft.plan(budget);
      EXPECT_TRUE(plan.feasible) << budget;
      EXPECT_LE(plan.peak_bytes, budget);
      EXPECT_LE(plan.cost_us, cost);
      EXPECT_TRUE(check_plan(plan).empty());
      cost = plan.cost_us;
      recomputing += plan.recomputed_nodes > 0;
    }
    EXPECT_FALSE(draft.plan(draft.floor() - 1).feasible);
    EXPECT_EQ(draft.plan(-1).recomputed_nodes, 0);
  }
  EXPECT_GT(recomputing, test::seeds(60));
}

// A chain of many nodes. The last node reads the first value, which can be made again.
Graph long_chain(int nodes) {
  std::string text = "graph chain(%x: u8[64]) {\n  %a0: u8[4096] = opaque(%x) {us=1.0}\n";
  for (int i = 1; i < nodes - 1; ++i)
    text += "  %a" + std::to_string(i) + ": u8[64] = opaque(%a" + std::to_string(i - 1) + ") {us=1.0}\n";
  text += "  %y: u8[64] = opaque(%a" + std::to_string(nodes - 2) + ", %a0) {us=1.0}\n  return %y\n}\n";
  return parse(text);
}

// The draft of a large graph answers without a budget before any value to make again is looked for. The first budget brings the
// choices, and the answers after it are those of a draft that knew them from the start.
TEST(PlanSearch, ADraftOfALargeGraphBeginsWithoutAFloor) {
  const Graph graph = long_chain(20'010);
  const std::int64_t plain = make_plan(graph, {.strategy = Strategy::none, .ordering = Ordering::recorded}).peak_bytes;
  PlanSearch draft(graph, {}, SearchEffort::draft);
  const Plan first = draft.plan(-1);
  EXPECT_EQ(first.peak_bytes, plain);
  EXPECT_EQ(first.floor_bytes, 0);
  EXPECT_EQ(first.keep_all_peak_bytes, draft.keep_all_peak());
  EXPECT_EQ(draft.bytes_of_percent(100), plain);
  EXPECT_TRUE(check_plan(first).empty());
  ASSERT_LT(draft.floor(), plain);
  const Plan lowest = draft.plan(draft.floor());
  EXPECT_TRUE(lowest.feasible);
  EXPECT_LE(lowest.peak_bytes, draft.floor());
  EXPECT_GT(lowest.recomputed_nodes, 0);
  EXPECT_EQ(print(draft.plan(-1).graph), print(first.graph));
  EXPECT_EQ(draft.plan(-1).floor_bytes, 0) << "an answer does not depend on the budgets before it";
}

// In a small graph nobody waits for the floor.
TEST(PlanSearch, ADraftOfASmallGraphKnowsItsFloor) {
  PlanSearch draft(long_chain(100), {}, SearchEffort::draft);
  EXPECT_EQ(draft.plan(-1).floor_bytes, draft.floor());
}

TEST(PlanSearch, AnswersForTheStrategiesThatAutoAsks) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    const Graph graph = test::there_and_back(seed);
    PlanSearch search(graph);
    for (const char* name : {"none", "greedy", "search", "regions", "binomial", "echo", "mincut", "mirror", "sqrt"}) {
      const Strategy strategy = strategy_named(name);
      for (const std::int64_t budget : {search.floor(), (search.floor() + search.keep_all_peak()) / 2}) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << name << ", budget " << budget);
        expect_equal(search.plan(budget, strategy), plan_alone(graph, {.strategy = strategy}, budget));
      }
    }
    EXPECT_THROW(search.plan(-1, strategy_named("exact")), UsageError);
    EXPECT_THROW(PlanSearch(graph, {}, SearchEffort::draft).plan(-1, strategy_named("echo")), UsageError);
  }
}

TEST(PlanSearch, PlansAsMakePlanDoesWithEveryKindOfOption) {
  for (unsigned seed = 100; seed < 104; ++seed) {
    const Graph graph = test::RandomProgram(seed, 60).graph();
    PlanOptions options;
    options.alignment = 1;
    options.strategy = Strategy::greedy;
    expect_plans_as_alone(graph, options, seed);
    options.near = std::make_shared<const Plan>(make_plan(graph, options));
    options.strategy = Strategy::automatic;
    expect_plans_as_alone(graph, options, seed);
    options = {};
    options.chunk_bytes = 200;
    options.ordering = Ordering::recorded;
    expect_plans_as_alone(graph, options, seed);
  }
}

TEST(PlanSearch, PlansAsMakePlanDoesWhereLayoutsAreSearched) {
  const Graph graph = test::RandomGraph(7).make(80);
  PlanOptions options;
  options.place_work = 2000;
  expect_plans_as_alone(graph, options, 7);
}

// More candidates are taken than layouts are remembered.
TEST(PlanSearch, AnswersAgainAfterManyOtherBudgets) {
  const Graph graph = test::chain(14, 100);
  PlanOptions options;
  options.alignment = 1;
  PlanSearch search(graph, options);
  const Plan first = search.plan(search.floor());
  for (std::int64_t budget = search.floor(); budget <= search.keep_all_peak(); budget += 50) search.plan(budget);
  const Plan again = search.plan(search.floor());
  expect_equal(again, first);
  EXPECT_GT(first.recomputed_nodes, 0);
}

TEST(PlanSearch, RefusesABudgetInItsOptionsAndANegativeOne) {
  PlanOptions options;
  options.budget = 100;
  EXPECT_THROW(PlanSearch(test::chain(2, 10), options), UsageError);
  options.budget = -1;
  options.budget_percent = 50;
  EXPECT_THROW(PlanSearch(test::chain(2, 10), options), UsageError);
  PlanSearch search(test::chain(2, 10));
  EXPECT_THROW(search.plan(-2), UsageError);
}

TEST(PlanSearch, GoesOnAfterItWasCancelled) {
  std::atomic<bool> cancel = false;
  PlanOptions options;
  options.cancel = &cancel;
  const Graph graph = test::chain(8, 100);
  PlanSearch search(graph, options);
  cancel = true;
  EXPECT_THROW(search.plan(search.floor()), Cancelled);
  cancel = false;
  expect_equal(search.plan(search.floor()), plan_alone(graph, {}, search.floor()));
}

}  // namespace
}  // namespace tapedeck
