// Tests that the floor does not depend on the source of the microseconds, so the budgets that can be met do not either.
#include <tapedeck/capture/planner/choose_candidate.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/planner_graphs.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

namespace tapedeck {
namespace {

// The same graph with random costs of its opaque nodes.
Graph at_random_costs(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  const std::string text = print(graph), key = "us=";
  std::string changed;
  std::size_t done = 0;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, done)) {
    changed += text.substr(done, at + key.size() - done) + fmt::format("{}.5", random() % 3 ? random() % 10 : random() % 1000);
    done = text.find_first_not_of("0123456789.e+-", at + key.size());
  }
  return parse(changed + text.substr(done));
}

// A random graph. Each node reads a few of the nodes before it.
Graph tangle(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  std::string text = "graph g(%n0: u8[9]) {\n", last;
  for (int i = 1; i <= nodes; ++i) {
    std::string reads = fmt::format("%n{}", i - 1);
    for (int k = 0; k < 2; ++k)
      if (const int other = static_cast<int>(random() % static_cast<unsigned>(i)); other + 1 < i)
        reads += fmt::format(", %n{}", other);
    text += fmt::format("%n{}: u8[{}] = opaque({}) {{us=1.0}}\n", i, 10 + random() % 90, reads);
  }
  return parse(text + fmt::format("return %n{}\n}}\n", nodes));
}

// Returns whether a plan at the floor recomputes.
bool expect_same_floor(const Graph& graph, unsigned seed, PlanOptions options) {
  options.alignment = 1;
  PlanSearch search(graph, options), other(at_random_costs(graph, seed), options);
  EXPECT_EQ(search.floor(), other.floor());
  EXPECT_EQ(search.keep_all_peak(), other.keep_all_peak());
  const std::int64_t floor = search.floor();
  for (const std::int64_t budget : {floor - 1, floor, floor + 1, (floor + search.keep_all_peak()) / 2}) {
    EXPECT_EQ(search.plan(budget).feasible, budget >= floor) << budget;
    const Plan plan = other.plan(budget);
    EXPECT_EQ(plan.feasible, budget >= floor) << budget;
    EXPECT_EQ(plan.floor_bytes, floor) << budget;
  }
  return other.plan(floor).recomputed_nodes > 0;
}

TEST(Floor, DoesNotDependOnCosts) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    PlanOptions options;
    options.ordering = seed % 2 ? Ordering::recorded : Ordering::automatic;
    recomputing += expect_same_floor(test::there_and_back(seed), seed, options);
    recomputing += expect_same_floor(tangle(seed, 30), seed, options);
  }
  EXPECT_GT(recomputing, 4);
}

// A plan without a budget does not look for cheap plans, and states the same floor.
TEST(Floor, IsTheSameWithoutABudget) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Graph graph = tangle(seed, 24);
    EXPECT_EQ(make_plan(at_random_costs(graph, seed)).floor_bytes, PlanSearch(graph).floor()) << seed;
  }
}

// In a graph of many nodes, the floor is that of the candidate that is placed lowest, but most candidates are never placed.
TEST(Floor, IsFoundWithoutPlacingAllCandidates) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Graph graph = test::uneven_layers(seed, 25);
    const PlanOptions options{.alignment = 1, .place_work = 0, .find_floor = true};
    Planning planning(options, LookFor::floor, Looks::at_none);
    find_orders(prepare(graph, &planning.passes, options.sharing), &planning);
    rematerialize(&planning);
    const std::int64_t floor = find_limits(&planning).floor;
    int all = 0, placed = 0;
    for (const Candidate& c : planning.candidates) {
      all += c.counts_for_floor();
      placed += c.counts_for_floor() && c.peak >= 0;
    }
    EXPECT_LT(placed, all / 2) << all;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (Candidate& c : planning.candidates)
      if (c.counts_for_floor()) least = std::min(least, planning.layouts.peak(c));
    EXPECT_EQ(floor, least);
  }
}

}  // namespace
}  // namespace tapedeck
