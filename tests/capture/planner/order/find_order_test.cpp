// Tests the search for orders of nodes with low peaks, against brute force on small graphs and against the list schedules on
// large ones. Other tests plan and replay graphs in the orders found.
#include <tapedeck/capture/planner/order/find_order.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/order/list_schedules.h>
#include <tapedeck/capture/planner/order/local_search.h>
#include <tapedeck/capture/planner/order/set_search.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace tapedeck {
namespace {

// A random program of opaque nodes. It has no windows and computes nothing in place, so that the live values are easy to
// count.
struct RandomDag {
  std::vector<std::vector<int>> reads;  // the earlier nodes that each node reads
  std::vector<std::int64_t> bytes;      // the bytes of each node's result
  std::string text;

  RandomDag(int nodes, std::uint64_t seed) {
    test::Dice dice{seed * 0x9E3779B97F4A7C15u + 1};
    text = "graph dag(%x: u8[8]) {\n";
    for (int n = 0; n < nodes; ++n) {
      reads.emplace_back();
      const auto reach = std::max<std::int64_t>(1, dice.below(nodes));
      for (std::int64_t k = dice.below(3); k > 0 && n > 0; --k)
        reads[n].push_back(static_cast<int>(n - 1 - dice.below(std::min<std::int64_t>(n, reach))));
      std::sort(reads[n].begin(), reads[n].end());
      reads[n].erase(std::unique(reads[n].begin(), reads[n].end()), reads[n].end());
      bytes.push_back(1 + dice.below(dice.below(4) == 0 ? 1000 : 30));
      std::string operands = reads[n].empty() ? "%x" : "";
      for (int r : reads[n]) operands += (operands.empty() ? "%v" : ", %v") + std::to_string(r);
      text += "  %v" + std::to_string(n) + ": u8[" + std::to_string(bytes[n]) + "] = opaque(" + operands + ")\n";
    }
    // The last node reads every value that no other node reads. Its result is an output, which does not lie in the arena.
    std::string ends;
    std::vector<int> last;
    for (int n = 0; n < nodes; ++n) {
      const bool is_read = std::any_of(reads.begin(), reads.end(),
                                       [&](const std::vector<int>& r) { return std::find(r.begin(), r.end(), n) != r.end(); });
      if (is_read) continue;
      last.push_back(n);
      ends += (ends.empty() ? "%v" : ", %v") + std::to_string(n);
    }
    reads.push_back(last);
    bytes.push_back(0);
    text += "  %end: u8[1] = opaque(" + ends + ")\n  return %end\n}\n";
  }

  // The least peak over all orders, by a search over the sets of nodes that have run.
  std::int64_t least_peak(std::uint32_t done = 0) {
    const int n = static_cast<int>(reads.size());
    if (done == (std::uint32_t{1} << n) - 1) return 0;
    const auto known = least_.find(done);
    if (known != least_.end()) return known->second;
    std::int64_t least = std::int64_t{1} << 60;
    for (int next = 0; next < n; ++next) {
      const bool can_run =
          !(done >> next & 1) && std::all_of(reads[next].begin(), reads[next].end(), [&](int r) { return done >> r & 1; });
      if (can_run) least = std::min(least, std::max(alive_while(next, done), least_peak(done | std::uint32_t{1} << next)));
    }
    return least_[done] = least;
  }

 private:
  std::int64_t alive_while(int next, std::uint32_t done) const {
    std::int64_t alive = bytes[next];
    for (int v = 0; v < static_cast<int>(reads.size()); ++v) {
      if (!(done >> v & 1)) continue;
      for (int r = 0; r < static_cast<int>(reads.size()); ++r)
        if (!(done >> r & 1) && std::find(reads[r].begin(), reads[r].end(), v) != reads[r].end()) {
          alive += bytes[v];
          break;
        }
    }
    return alive;
  }
  std::unordered_map<std::uint32_t, std::int64_t> least_;
};

std::int64_t peak_in_order(const NodeOrder& order, const Graph& graph) {
  Graph in_order = order.nodes.empty() ? graph : reorder(graph, order.nodes);
  verify(in_order);
  const Facts facts = collect_facts(in_order);
  return Schedule(facts).peak().bytes;
}

TEST(Order, EqualsBruteForceOnGraphsOf18Nodes) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    RandomDag dag(3 + static_cast<int>(seed % 15), seed);  // the graph also has the node at the end
    const Graph graph = parse(dag.text, "dag");
    const Facts facts = collect_facts(graph);
    const NodeOrder found = find_order(facts, graph, own_sources(graph));
    ASSERT_EQ(found.live_peak, dag.least_peak()) << "seed " << seed << "\n" << dag.text;
    EXPECT_TRUE(found.optimal) << "seed " << seed;
    EXPECT_EQ(peak_in_order(found, graph), found.live_peak) << "seed " << seed;
    better += !found.nodes.empty();
  }
  EXPECT_GT(better, 60) << "graphs whose recorded order is best show nothing";
}

// With memory for only a few sets, the search keeps fewer sets of each size. It still returns an order, and says that it
// left sets out.
TEST(Order, SetsAreKeptWithinTheirBytes) {
  int left_out = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomDag dag(17, seed);
    const Graph graph = parse(dag.text, "dag");
    const OrderProblem problem = order_problem(collect_facts(graph), graph, own_sources(graph), false);
    OrderSearch search;
    search.below = std::numeric_limits<std::int64_t>::max();
    search.width = 1 << 22;
    search.work = std::int64_t{1} << 40;
    const OrderFound all = search_orders(problem, search);
    ASSERT_TRUE(all.complete) << "seed " << seed;
    search.bytes = 2000;  // room for only a few sets
    const OrderFound few = search_orders(problem, search);
    ASSERT_EQ(few.items.size(), all.items.size()) << "seed " << seed;
    EXPECT_GE(few.peak, all.peak) << "seed " << seed;
    EXPECT_LE(few.work, all.work) << "seed " << seed;
    const std::vector<std::int64_t> live = live_in_order(problem, few.items);
    EXPECT_EQ(*std::max_element(live.begin(), live.end()), few.peak) << "seed " << seed;
    left_out += !few.complete;
  }
  EXPECT_GT(left_out, 10);
}

TEST(Order, ClimbingSaysWhatWorkItTook) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = parse(RandomDag(60, seed).text, "dag");
    const OrderProblem problem = order_problem(collect_facts(graph), graph, own_sources(graph), false);
    const ItemOrder start = recorded_order(problem);
    const Climbed few = climb_order(problem, start, {0, 500}), many = climb_order(problem, start, {0, 1'000'000});
    EXPECT_GT(few.work, 0) << "seed " << seed;
    EXPECT_LE(few.work, 500 + 10 * problem.item_count())
        << "seed " << seed << ": no more than it may, but for the move it is at";
    EXPECT_LE(few.work, many.work) << "seed " << seed;
    EXPECT_LE(many.peak, few.peak) << "seed " << seed;
  }
}

// With little work, other methods of the search give the answer. The reported peak must still be exact, and never above the
// peak of a list schedule.
TEST(Order, PeaksAreExactAndNeverAboveAListSchedule) {
  int moved = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed, 90).graph(), &passes);
    const Facts facts = collect_facts(graph);
    const std::vector<NodeId> source = own_sources(graph);
    const std::vector<NodeOrder> lists = find_list_orders(facts, graph, source);
    for (std::int64_t work : {std::int64_t{0}, std::int64_t{2000}, std::int64_t{-1}}) {
      OrderOptions options;
      options.work = work;
      const NodeOrder found = find_order(facts, graph, source, options);
      EXPECT_EQ(peak_in_order(found, graph), found.live_peak) << "seed " << seed << ", work " << work;
      for (const NodeOrder& list : lists)
        EXPECT_LE(found.live_peak, list.live_peak) << list.name << ", seed " << seed << ", work " << work;
      const NodeOrder again = find_order(facts, graph, source, options);
      EXPECT_EQ(found.nodes, again.nodes) << "seed " << seed;
      moved += !found.nodes.empty();
    }
    for (const NodeOrder& list : lists) EXPECT_EQ(peak_in_order(list, graph), list.live_peak) << list.name << ", seed " << seed;
  }
  EXPECT_GT(moved, 150);
}

// On graphs where no list schedule is good, the search looks at sets of nodes and at the nodes around the peak.
TEST(Order, LargeGraphsGetFarBelowTheListSchedules) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    test::Dice dice{seed * 0x9E3779B97F4A7C15u + 1};
    std::string text = "graph g(%x: u8[8]) {\n";
    for (int n = 0; n < 400; ++n) {
      text += "  %v" + std::to_string(n) + ": u8[" + std::to_string(10 << dice.below(10)) + "] = opaque(%x";
      for (std::int64_t k = dice.below(3); k >= 0 && n > 0; --k)
        text += ", %v" + std::to_string(std::max<std::int64_t>(0, n - 1 - dice.below(40)));
      text += ")\n";
    }
    const Graph graph = parse(text + "  return %v399\n}\n", "random");
    const Facts facts = collect_facts(graph);
    const NodeOrder found = find_order(facts, graph, own_sources(graph));
    EXPECT_EQ(peak_in_order(found, graph), found.live_peak);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const NodeOrder& list : find_list_orders(facts, graph, own_sources(graph))) least = std::min(least, list.live_peak);
    EXPECT_LT(static_cast<double>(found.live_peak), 0.8 * static_cast<double>(least)) << "seed " << seed;
  }
}

// The index of a constant is the index of its buffer. Each reader must read its own constant, in any order of the nodes.
TEST(Order, ConstantsKeepTheirBuffers) {
  const Graph graph = parse(R"(graph g(%x: f32[4]) state(%s: f32[4]) {
    %one: f32[4] = constant() {value=[1.0,2.0,3.0,4.0]}
    %two: f32[4] = constant() {value=[5.0,6.0,7.0,8.0]}
    %a: f32[4] = mul(%x, %one)
    %big: f32[64] = opaque(%x)
    %b: f32[4] = mul(%x, %two)
    %c: f32[4] = opaque(%big, %b)
    %d: f32[4] = add(%a, %c)
    return %d
    update %s = %b
  })",
                            "constants");
  // This reorders the graph so that its constants change places. The loop below also reorders the graph with its clones
  // (there are none), so that the constants change places again.
  const Graph moved = reorder(graph, {1, 4, 3, 5, 0, 2, 6});
  verify(moved);
  const Facts facts = collect_facts(moved);
  const ClonedGraph as_is{moved, own_sources(moved)};
  PassRunner passes;
  for (const ClonedGraph& cloned : {as_is, reorder(as_is, {2, 4, 5, 0, 1, 3, 6})}) {
    verify(cloned.graph);
    EXPECT_EQ(check_plan(finish_plan(facts, cloned, 0, {}, &passes)), std::vector<std::string>{});
  }
  check_replay(graph);
}

TEST(Order, OneThatMeetsTheBoundIsKept) {
  const Graph graph = test::chain(30, 1000);
  const Facts facts = collect_facts(graph);
  const NodeOrder found = find_order(facts, graph, own_sources(graph));
  EXPECT_TRUE(found.nodes.empty());
  EXPECT_TRUE(found.optimal);
  EXPECT_EQ(found.name, "recorded");
}

// Clones may move too. A clone must stay behind its original, and the planned peak must equal the peak that the search
// counts.
TEST(Order, GraphsWithClonesAreReordered) {
  int moved = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed, 60).graph(), &passes);
    const Facts facts = collect_facts(graph);
    const Choices choices = strategy_entry("greedy").choose(facts, {});
    const ClonedGraph cloned = clone_graph(facts, runs_after(facts, choices.journal, choices.points.back().journal));
    const NodeOrder found = find_order(facts, cloned.graph, cloned.source);
    PlanOptions options;
    options.alignment = 1;
    const Plan before = finish_plan(facts, cloned, 0, options, &passes);
    if (found.nodes.empty()) {
      EXPECT_EQ(before.lower_bound_bytes, facts.external_bytes + found.live_peak) << "seed " << seed;
      continue;
    }
    const Plan plan = finish_plan(facts, reorder(cloned, found.nodes), 0, options, &passes);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << "seed " << seed;
    EXPECT_EQ(check_clones(plan), std::vector<std::string>{}) << "seed " << seed;
    EXPECT_EQ(plan.lower_bound_bytes, facts.external_bytes + found.live_peak) << "seed " << seed;
    EXPECT_LT(plan.lower_bound_bytes, before.lower_bound_bytes) << "seed " << seed;
    ++moved;
  }
  EXPECT_GT(moved, 10);
}

// ---- plans and replays in other orders ----

// A training step that updates the weight of each layer at the end of the tape. The gradient need not wait so long.
Graph training_step(int layers) {
  std::string text = "graph step(%x: f32[256]) state(", body, updates;
  const auto name = [](const char* what, int i) { return what + std::to_string(i); };
  for (int i = 1; i <= layers; ++i) text += (i > 1 ? ", " : "") + name("%w", i) + ": f32[256,256]";
  text += ") {\n  %h0: f32[256] = tanh(%x)\n";
  for (int i = 1; i <= layers; ++i)
    text += "  " + name("%h", i) + ": f32[256] = opaque(" + name("%h", i - 1) + ", " + name("%w", i) + ")\n";
  text += "  " + name("%g", layers) + ": f32[256] = exp(" + name("%h", layers) + ") [phase=backward]\n";
  for (int i = layers; i >= 1; --i) {
    text +=
        "  " + name("%d", i) + ": f32[256,256] = opaque(" + name("%g", i) + ", " + name("%h", i - 1) + ") [phase=backward]\n";
    text += "  " + name("%g", i - 1) + ": f32[256] = opaque(" + name("%g", i) + ", " + name("%w", i) + ") [phase=backward]\n";
  }
  for (int i = 1; i <= layers; ++i) {
    text += "  " + name("%n", i) + ": f32[256,256] = sub(" + name("%w", i) + ", " + name("%d", i) + ") [phase=update]\n";
    updates += (i > 1 ? ", " : "") + name("%w", i) + " = " + name("%n", i);
  }
  return parse(text + "  return %g0\n  update " + updates + "\n}\n", "step");
}

TEST(Order, GradientsAreUsedUpWhereTheyArise) {
  constexpr std::int64_t kWeight = std::int64_t{256} * 256 * 4;
  PlanOptions options;
  options.strategy = Strategy::none;
  const Plan automatic = make_plan(training_step(8), options);
  options.ordering = Ordering::recorded;
  const Plan recorded = make_plan(training_step(8), options);
  EXPECT_EQ(recorded.order, "recorded");
  EXPECT_NE(automatic.order, "recorded");
  EXPECT_GE(recorded.arena_bytes, 8 * kWeight);
  EXPECT_LE(automatic.arena_bytes, 2 * kWeight);
  EXPECT_EQ(automatic.external_bytes, recorded.external_bytes);
  EXPECT_EQ(automatic.cost_us, recorded.cost_us);
  check_replay(training_step(3));
}

TEST(Order, PhasesStayTogetherIfTheyAreToRunApart) {
  PlanOptions options;
  options.split_phases = true;
  const Plan plan = make_plan(training_step(8), options);
  const std::vector<Phase> phases = run_phases(plan.graph);
  EXPECT_TRUE(std::is_sorted(phases.begin(), phases.end()));
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  check_replay(training_step(3), options);
}

TEST(Order, PlansAreNoWorseThanInTheRecordedOrder) {
  int better = 0, lower_floors = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Graph graph = test::RandomProgram(seed, 60).graph();
    PlanOptions options;
    options.alignment = 1;
    options.strategy = Strategy::none;
    const Plan automatic = make_plan(graph, options);
    options.ordering = Ordering::recorded;
    const Plan recorded = make_plan(graph, options);
    EXPECT_LE(automatic.peak_bytes, recorded.peak_bytes) << "seed " << seed;
    EXPECT_LE(automatic.floor_bytes, recorded.floor_bytes) << "seed " << seed;
    EXPECT_EQ(automatic.peak_bytes == recorded.peak_bytes, automatic.order == "recorded")
        << "seed " << seed << ": ties keep the tape's order";
    EXPECT_EQ(recorded.order, "recorded");
    better += automatic.peak_bytes < recorded.peak_bytes;
    lower_floors += automatic.floor_bytes < recorded.floor_bytes;
  }
  EXPECT_GT(better, 30);
  EXPECT_GT(lower_floors, 10);
}

TEST(Order, BudgetsStayMonotoneDownToTheFloor) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Graph graph = test::RandomProgram(seed, 60).graph();
    PlanSearch search(graph);
    const std::int64_t floor = search.floor(), peak = search.keep_all_peak();
    double cost = -1;
    std::vector<std::int64_t> budgets;
    for (int i = 0; i <= 6; ++i) budgets.push_back(floor + (peak - floor) * i / 6);
    std::reverse(budgets.begin(), budgets.end());
    for (std::int64_t budget : budgets) {
      const Plan plan = search.plan(budget);
      ASSERT_TRUE(plan.feasible) << "seed " << seed << ": " << plan.infeasible_reason;
      EXPECT_LE(plan.peak_bytes, budget) << "seed " << seed;
      EXPECT_GE(plan.cost_us, cost) << "seed " << seed;
      EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << "seed " << seed;
      EXPECT_EQ(check_clones(plan), std::vector<std::string>{}) << "seed " << seed;
      cost = plan.cost_us;
    }
    if (floor == 0) continue;
    EXPECT_FALSE(search.plan(floor - 1).feasible) << "seed " << seed;
  }
}

TEST(Order, ReplaysInOtherOrdersEqualEager) {
  int moved = 0;
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    const Graph graph = test::RandomGraph(seed).make(40);
    PlanOptions options;
    options.strategy = Strategy::none;
    if (seed % 2) {
      const Plan all = make_plan(graph);
      options.strategy = Strategy::automatic;
      options.budget = all.floor_bytes;
    }
    const Plan plan = make_plan(graph, options);
    moved += plan.order != "recorded";
    test::Dice dice{seed};
    options.threads = static_cast<int>(1 + dice.below(3));
    check_replay(graph, options, 2);
  }
  EXPECT_GT(moved, 10);
}

// A plan that keeps phases apart, or that lies in chunks, is also a plan of the graph. So the floor without these conditions
// must not be higher than the floor with them.
TEST(Order, TheFloorIsAsLowAsThatOfPlansWithLessFreedom) {
  const auto floor_of = [](const char* model, bool split_phases, std::int64_t chunk) {
    PlanOptions options;
    options.split_phases = split_phases;
    options.chunk_bytes = chunk;
    return make_plan(record_model(*find_model(model), {.batch = 1, .abstract = true}).graph, options).floor_bytes;
  };
  EXPECT_LE(floor_of("squeezenet", false, 0), floor_of("squeezenet", true, 0));
  // The floor comes from a search and is not proven, so it may be half a percent too high.
  EXPECT_LE(floor_of("resnet18", false, 0), floor_of("resnet18", true, 0) / 200 * 201);
  EXPECT_LE(floor_of("gpt2", false, 0), floor_of("gpt2", false, 295'072'644));
}

TEST(Order, WithoutAFloorNothingIsRecomputedToFindIt) {
  const Graph graph = test::chain(40, 1000);
  PlanOptions options;
  options.find_floor = false;
  const Plan quick = make_plan(graph, options);
  EXPECT_EQ(quick.floor_bytes, quick.peak_bytes);
  EXPECT_EQ(quick.keep_all_peak_bytes, quick.peak_bytes);
  const Plan whole = make_plan(graph);
  EXPECT_LT(whole.floor_bytes, whole.peak_bytes);
  EXPECT_EQ(whole.peak_bytes, quick.peak_bytes);
  EXPECT_EQ(print(whole.graph), print(quick.graph));
  options.budget = whole.floor_bytes;
  EXPECT_TRUE(make_plan(graph, options).feasible) << "a budget is met all the same";
}

}  // namespace
}  // namespace tapedeck
