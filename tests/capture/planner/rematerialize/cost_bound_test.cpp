// Tests the lower bound of cost against a search that tries every way to run a small graph, and against the plans of random
// graphs.
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <limits>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace tapedeck {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A program of a few nodes with one result each. Every value has a size and a cost of its own; the last one is returned.
struct SmallProgram {
  struct Node {
    std::vector<int> reads;  // nodes
    std::int64_t bytes = 0;
    int us = 0;
  };
  std::vector<Node> nodes;

  SmallProgram(unsigned seed, int size) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int i = 0; i < size; ++i) {
      Node node{{}, 1 + pick(9), 1 + pick(20)};
      std::set<int> reads;
      if (i > 0) reads.insert(pick(3) > 0 ? i - 1 : pick(i));
      for (int k = pick(3); i > 0 && k > 0; --k) reads.insert(pick(i));
      node.reads.assign(reads.begin(), reads.end());
      nodes.push_back(node);
    }
  }

  Graph graph() const {
    std::string text = "graph g(%x: u8[1]) {\n";
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      text += "  %v" + std::to_string(i) + ": u8[" + std::to_string(nodes[i].bytes) + "] = opaque(%x";
      for (int r : nodes[i].reads) text += ", %v" + std::to_string(r);
      text += ") {us=" + std::to_string(nodes[i].us) + ".0}\n";
    }
    return parse(text + "  return %v" + std::to_string(nodes.size() - 1) + "\n}\n");
  }

  // The last value is not in the arena.
  std::int64_t bytes(int i) const {
    return i + 1 == static_cast<int>(nodes.size()) ? 0 : nodes[static_cast<std::size_t>(i)].bytes;
  }
  std::int64_t bytes_of_all(unsigned held) const {
    std::int64_t sum = 0;
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
      if (held >> i & 1) sum += bytes(i);
    return sum;
  }

  // The least cost of running every node at least once with no more than `room` bytes held at any time: the shortest path over
  // all pairs of (nodes that have run, values that are held).
  double cheapest_run(std::int64_t room) const {
    const auto n = static_cast<int>(nodes.size());
    std::vector<double> least(std::size_t{1} << (2 * n), kNever);
    using Entry = std::pair<double, unsigned>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](double cost, unsigned ran, unsigned held) {
      const unsigned state = ran << n | held;
      if (cost < least[state]) least[state] = cost, queue.push({cost, state});
    };
    reach(0, 0, 0);
    const unsigned all = (1u << n) - 1;
    while (!queue.empty()) {
      const double cost = queue.top().first;
      const unsigned state = queue.top().second, ran = state >> n, held = state & all;
      queue.pop();
      if (cost > least[state]) continue;
      if (ran == all) return cost;
      for (int i = 0; i < n; ++i) {
        if (held >> i & 1) reach(cost, ran, held & ~(1u << i));
        unsigned needed = 0;
        for (int r : nodes[static_cast<std::size_t>(i)].reads) needed |= 1u << r;
        if ((needed & ~held) == 0 && bytes_of_all(held | 1u << i) <= room)
          reach(cost + nodes[static_cast<std::size_t>(i)].us, ran | 1u << i, held | 1u << i);
      }
    }
    return kNever;
  }
};

CostBound bound_of(const Graph& graph, std::int64_t arena_bytes, Sharing sharing = Sharing::all) {
  const Facts facts = collect_facts(graph, nullptr, sharing);
  const Watch watch;
  return CostBounds(facts, watch).at(facts.external_bytes + arena_bytes);
}

TEST(CostBound, IsNeverAboveTheCheapestWayToRunASmallGraph) {
  int above_keep_all = 0, met = 0, infeasible = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const SmallProgram program(seed, 4 + static_cast<int>(seed % 4));
    const Graph graph = program.graph();
    const Facts facts = collect_facts(graph, nullptr, Sharing::none);
    const Watch watch;
    CostBounds bounds(facts, watch);
    for (std::int64_t room = 3; room <= 24; room += 2) {
      const double cheapest = program.cheapest_run(room);
      const CostBound bound = bounds.at(facts.external_bytes + room);
      if (!bound.may_fit) {
        EXPECT_EQ(cheapest, kNever) << "seed " << seed << ", " << room << " bytes";
        ++infeasible;
        continue;
      }
      if (cheapest == kNever) continue;
      const double extra = cheapest - facts.keep_all_cost;
      EXPECT_LE(bound.extra_us, extra) << "seed " << seed << ", " << room << " bytes";
      above_keep_all += bound.extra_us > 0.5;
      met += bound.extra_us > 0.5 && bound.extra_us > extra - 1e-6;
    }
  }
  EXPECT_GT(above_keep_all, 20);  // it says something
  EXPECT_GT(met, 5);              // and is the least cost at times
  EXPECT_GT(infeasible, 20);
}

// %a and %b straddle %k, and %a is the cheaper one.
const char* const kTwoStraddle =
    "graph g(%x: u8[1]) {\n"
    "  %a: u8[100] = opaque(%x) {us=3.0}\n"
    "  %b: u8[100] = opaque(%x) {us=8.0}\n"
    "  %s: u8[1] = opaque(%a) {us=1.0}\n"
    "  %t: u8[1] = opaque(%b) {us=1.0}\n"
    "  %k: u8[10] = opaque(%s, %t) {us=20.0}\n"
    "  %c: u8[1] = opaque(%k, %b) {us=20.0}\n"
    "  %d: u8[10] = opaque(%c, %a) {us=20.0}\n"
    "  return %d\n"
    "}\n";

TEST(CostBound, PaysForTheBytesBeyondTheBudgetAtTheirCheapestMaker) {
  const Graph graph = parse(kTwoStraddle);
  EXPECT_EQ(bound_of(graph, 212).extra_us, 0);
  EXPECT_EQ(bound_of(graph, 212).at, kNone);
  EXPECT_NEAR(bound_of(graph, 112).extra_us, 3, 1e-6);
  EXPECT_NEAR(bound_of(graph, 162).extra_us, 3, 1e-6);  // half of %a would do, but there is no half of a run
  EXPECT_NEAR(bound_of(graph, 111).extra_us, 3 + 8, 1e-6);
  const CostBound none = bound_of(graph, 110);  // %c reads %b and %k
  EXPECT_FALSE(none.may_fit);
  EXPECT_EQ(none.stuck_bytes, 111 + 1 + 10);  // and %x and %d
  EXPECT_EQ(graph.value_name(graph.nodes[none.at].first_output), "c");
}

TEST(CostBound, PaysAMakerOnceForAllOfItsResults) {
  const Graph graph = parse(
      "graph g(%x: u8[1]) {\n"
      "  %a: u8[100], %b: u8[100] = opaque(%x) {us=7.0}\n"
      "  %s: u8[1] = opaque(%a, %b) {us=1.0}\n"
      "  %k: u8[10] = opaque(%s) {us=1.0}\n"
      "  %l: u8[191] = opaque(%k) {us=1.0}\n"
      "  %m: u8[1] = opaque(%l) {us=1.0}\n"
      "  %d: u8[10] = opaque(%m, %a, %b) {us=1.0}\n"
      "  return %d\n"
      "}\n");
  EXPECT_NEAR(bound_of(graph, 201).extra_us, 7, 1e-6);  // at %l
  EXPECT_NEAR(bound_of(graph, 301).extra_us, 7, 1e-6);
  EXPECT_EQ(bound_of(graph, 401).extra_us, 0);
}

// %r is cheap, but its operand %n is kept for nobody else: it is made again too, or kept, which wins nothing.
TEST(CostBound, PaysForOperandsThatNobodyElseKeeps) {
  const Graph graph = parse(
      "graph g(%x: u8[1]) {\n"
      "  %h: u8[10] = opaque(%x) {us=50.0}\n"
      "  %n: u8[100] = opaque(%h) {us=20.0}\n"
      "  %r: u8[100] = opaque(%n) {us=1.0}\n"
      "  %s: u8[1] = opaque(%r) {us=1.0}\n"
      "  %k: u8[180] = opaque(%s) {us=1.0}\n"
      "  %m: u8[1] = opaque(%k) {us=1.0}\n"
      "  %d: u8[1] = opaque(%m, %r, %h) {us=1.0}\n"
      "  return %d\n"
      "}\n");
  EXPECT_NEAR(bound_of(graph, 210).extra_us, 21 * 0.81, 0.01);  // 291 bytes at %k: 81 of the 100 of %r go, for %r and %n
  EXPECT_LE(bound_of(graph, 210).extra_us, 21);
}

// relu writes over its operand where nobody else reads it.
TEST(CostBound, CountsBytesThatMayBeTakenOverOnce) {
  const Graph graph = parse(
      "graph g(%x: f32[25]) {\n"
      "  %a: f32[25] = exp(%x)\n"
      "  %k: f32[25] = relu(%a)\n"
      "  %c: f32[1] = sum(%k) {axes=[0], keepdims=true}\n"
      "  %d: f32[1] = neg(%c)\n"
      "  return %d\n"
      "}\n");
  EXPECT_TRUE(bound_of(graph, 104).may_fit);
  EXPECT_EQ(bound_of(graph, 104).extra_us, 0);
  EXPECT_FALSE(bound_of(graph, 104, Sharing::none).may_fit);
}

// A callback of the host never runs twice, so the bytes it makes cannot be given up. Those of exp can.
TEST(CostBound, NeverPaysForANodeThatCannotRunAgain) {
  const auto graph_with = [](const std::string& maker) {
    return parse("graph g(%x: u8[64]) {\n  " + maker +
                 "(%x) {name=\"f\"}\n"
                 "  %k: u8[64] = opaque(%x, %a)\n"
                 "  %l: u8[1] = opaque(%k)\n"
                 "  %m: u8[64] = opaque(%l)\n"
                 "  %n: u8[1] = opaque(%m)\n"
                 "  %d: u8[1] = opaque(%n, %a)\n"
                 "  return %d\n"
                 "}\n");
  };
  const CostBound bound = bound_of(graph_with("%s: u8[0], %a: u8[64] = on_host"), 128);
  EXPECT_FALSE(bound.may_fit);
  EXPECT_EQ(bound.stuck_bytes, 64 + 65 + 64 + 1);
}

// Every plan that fits costs at least its bound, whatever chose it.
template <class MakeGraph>
void expect_bounds_hold(unsigned seeds, MakeGraph make, int* above_keep_all) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const Graph graph = make(seed);
    PlanOptions options;
    options.alignment = 1;
    options.place_work = 0;
    PlanSearch search(graph, options);
    for (const double percent : {60.0, 80.0, 95.0}) {
      const Plan plan = search.plan(search.bytes_of_percent(percent));
      EXPECT_FALSE(plan.bound_from.empty());
      if (!plan.feasible) continue;
      EXPECT_FALSE(plan.bound_from.starts_with("no plan fits")) << plan.bound_from;
      EXPECT_LE(plan.cost_lower_bound_us, plan.cost_us) << "seed " << seed << " at " << percent;
      *above_keep_all += plan.bound_from.starts_with("knapsack at %");
    }
  }
}

TEST(CostBound, IsNeverAboveAPlanOfARandomGraph) {
  int above_keep_all = 0;
  expect_bounds_hold(
      test::seeds(50), [](unsigned seed) { return test::there_and_back(seed); }, &above_keep_all);
  EXPECT_GT(above_keep_all, test::seeds(25));
  expect_bounds_hold(
      test::seeds(20), [](unsigned seed) { return test::RandomProgram(seed).graph(); }, &above_keep_all);
  expect_bounds_hold(
      test::seeds(20), [](unsigned seed) { return test::RandomGraph(seed).make(24); }, &above_keep_all);
}

TEST(CostBound, APlanSaysWhereItComesFrom) {
  const Graph graph = parse(kTwoStraddle);
  PlanOptions options;
  options.alignment = 1;
  EXPECT_EQ(make_plan(graph, options).bound_from, "");
  const std::int64_t external = 1 + 10;
  options.budget = external + 212;
  const Plan roomy = make_plan(graph, options);
  EXPECT_EQ(roomy.bound_from, "keep all: nothing has to be made again");
  EXPECT_EQ(roomy.cost_lower_bound_us, roomy.keep_all_cost_us);
  options.budget = external + 112;
  const Plan tight = make_plan(graph, options);
  EXPECT_EQ(tight.bound_from, "knapsack at %k");
  EXPECT_NEAR(tight.cost_lower_bound_us, tight.keep_all_cost_us + 3, 1e-6);
  options.budget = external + 20;
  const Plan none = make_plan(graph, options);
  EXPECT_FALSE(none.feasible);
  EXPECT_EQ(none.cost_lower_bound_us, 0);
  EXPECT_EQ(none.bound_from, "no plan fits: 122 bytes that no plan can give up are alive at %c");
}

}  // namespace
}  // namespace tapedeck
