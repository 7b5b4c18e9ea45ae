// Tests make_plan as a whole: properties that hold for every program, strategy and budget. Random plans are judged by the
// checker and by simulated memory.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/seeds.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace tapedeck {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The checker, the checker of clones and the byte simulation, with random orders of segments, must all accept the plan.
void expect_sound(const Plan& plan, unsigned seed) {
  const auto violations = check_plan(plan), clones = check_clones(plan);
  ASSERT_TRUE(violations.empty()) << joined(violations) << print(plan.graph);
  ASSERT_TRUE(clones.empty()) << joined(clones) << print(plan.graph);
  for (unsigned order = 0; order < 3; ++order) {
    const std::string complaint = test::ByteSimulation(plan).run(seed + order);
    ASSERT_EQ(complaint, "") << print(plan.graph);
  }
  EXPECT_EQ(plan.peak_bytes, plan.external_bytes + plan.arena_bytes);
  EXPECT_LE(plan.lower_bound_bytes, plan.peak_bytes);
  EXPECT_GE(plan.recompute_cost_ratio(), 1.0);
}

PlanOptions options_for(Strategy strategy, unsigned seed) {
  PlanOptions options;
  options.strategy = strategy;
  options.alignment = std::int64_t{1} << (seed % 8);
  options.segment_us = seed % 3 == 0 ? 0 : 5.0 * (seed % 7);  // 0: every node is a segment of its own
  return options;
}

class RandomPlans : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomPlans, EveryStrategyIsSoundWithoutBudget) {
  const Graph graph = test::RandomProgram(GetParam()).graph();
  for (Strategy strategy : {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic}) {
    PlanOptions options = options_for(strategy, GetParam());
    options.find_floor = GetParam() % 4 == 0;
    const Plan plan = make_plan(graph, options);
    ASSERT_NO_FATAL_FAILURE(expect_sound(plan, GetParam())) << print(graph);
    EXPECT_TRUE(plan.feasible);
    if (strategy == Strategy::none || strategy == Strategy::greedy) {
      EXPECT_EQ(plan.recomputed_nodes, 0);
      EXPECT_EQ(plan.peak_bytes, plan.keep_all_peak_bytes);
      EXPECT_EQ(plan.recompute_cost_ratio(), 1.0);
    }
  }
}

TEST_P(RandomPlans, BudgetsAreHardAndMonotone) {
  const Graph graph = test::RandomProgram(GetParam()).graph();
  PlanOptions options = options_for(GetParam() % 2 ? Strategy::greedy : Strategy::automatic, GetParam());
  const Plan keep_all = make_plan(graph, options_for(Strategy::none, GetParam()));
  double last_cost = std::numeric_limits<double>::infinity();
  for (double percent : {40, 55, 65, 75, 85, 92, 97, 100}) {
    options.budget_percent = percent;
    const Plan plan = make_plan(graph, options);
    ASSERT_NO_FATAL_FAILURE(expect_sound(plan, GetParam())) << print(graph);
    EXPECT_EQ(plan.floor_bytes, keep_all.floor_bytes) << "the floor depends on the budget";
    EXPECT_LE(plan.floor_bytes, plan.peak_bytes);
    EXPECT_EQ(plan.feasible, plan.peak_bytes <= plan.budget_bytes);
    EXPECT_EQ(plan.feasible, plan.infeasible_reason.empty());
    if (!plan.feasible) {
      EXPECT_EQ(last_cost, std::numeric_limits<double>::infinity()) << "a larger budget became infeasible";
      EXPECT_TRUE(options.strategy != Strategy::automatic || plan.budget_bytes < plan.floor_bytes);
      continue;
    }
    EXPECT_LE(plan.cost_us, last_cost);
    last_cost = plan.cost_us;
    EXPECT_TRUE(percent < 100 || plan.recomputed_nodes == 0);
  }
}

// The strategies count live bytes after each choice. The count must equal, to the byte, the need of the finished plan.
TEST_P(RandomPlans, LiveBytesOfEveryChoiceAreExact) {
  const Graph captured = test::RandomProgram(GetParam()).graph();
  PassRunner passes;
  const Graph graph = prepare(captured, &passes);
  const Facts facts = collect_facts(graph);
  PlanOptions options;
  options.alignment = 1;
  for (const Choices& choices : {strategy_entry("regions").choose(facts, {}), strategy_entry("greedy").choose(facts, {})}) {
    for (const ChoicePoint& point : choices.points) {
      const Plan plan =
          finish_plan(facts, clone_graph(facts, runs_after(facts, choices.journal, point.journal)), 0, options, &passes);
      ASSERT_EQ(plan.lower_bound_bytes, graph.nodes.empty() ? plan.external_bytes : facts.external_bytes + point.live_peak)
          << print(plan.graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range(0u, static_cast<unsigned>(test::seeds(220))));

TEST(Plan, IsDeterministic) {
  for (unsigned seed = 1000; seed < 1010; ++seed) {
    PlanOptions options;
    options.budget_percent = 70;
    const Plan a = make_plan(test::RandomProgram(seed).graph(), options),
               b = make_plan(test::RandomProgram(seed).graph(), options);
    EXPECT_EQ(print(a.graph), print(b.graph));
    EXPECT_EQ(a.peak_bytes, b.peak_bytes);
    for (std::size_t v = 0; v < a.values.size(); ++v) EXPECT_EQ(a.values[v].offset, b.values[v].offset);
  }
}

TEST(Plan, LiveBytesPeakAtTheLowerBound) {
  const Plan plan = make_plan(test::chain(12, 1000));
  const auto live = live_bytes(plan);
  EXPECT_EQ(*std::max_element(live.begin(), live.end()), plan.lower_bound_bytes);
  EXPECT_EQ(plan.external_bytes, 2000);
}

Plan plan_text(const std::string& text) {
  const Plan plan = make_plan(parse(text, "test"));
  EXPECT_EQ(joined(check_plan(plan)), "");
  EXPECT_EQ(test::ByteSimulation(plan).run(1), "");
  return plan;
}

TEST(Plan, ViewsAreWindowsWhereReadersTakeThem) {
  const Plan plan = plan_text(R"(graph g(%x: f32[4,6], %y: f32[4,6]) {
    %t: f32[6,4] = transpose(%x) {axes=[1,0]}
    %m: f32[6,6] = matmul(%t, %y)
    %o: u8[8] = opaque(%m) {us=1.0}
    return %o
  })");
  const Placement& t = plan.values[testing::value_named(plan.graph, "t")];
  EXPECT_EQ(t.reason, Reason::alias);
  EXPECT_EQ(t.where, Where::input);
  EXPECT_FALSE(t.dense);
  EXPECT_EQ(t.strides[0], 1);
  EXPECT_EQ(t.strides[1], 6);
}

TEST(Plan, StridedViewsAreCopiedForReadersThatNeedDense) {
  const Plan plan = plan_text(R"(graph g(%x: f32[4,6]) {
    %t: f32[6,4] = transpose(%x) {axes=[1,0]}
    %o: u8[8] = opaque(%t) {us=1.0}
    return %o
  })");
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "t")].where, Where::arena);
  EXPECT_TRUE(plan.values[testing::value_named(plan.graph, "t")].dense);
}

TEST(Plan, ElementwiseChainsRunInPlace) {
  const Plan plan = plan_text(R"(graph g(%x: f32[100]) {
    %a: f32[100] = exp(%x)
    %b: f32[100] = relu(%a)
    %c: f32[100] = neg(%b)
    %o: u8[8] = opaque(%c) {us=1.0}
    return %o
  })");
  EXPECT_EQ(plan.arena_bytes, 400);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "c")].reason, Reason::in_place);
}

TEST(Plan, OptimizerWritesStraightIntoState) {
  const Plan plan = plan_text(R"(graph g(%x: f32[4,6], %lr: f32[]) state(%w: f32[4,6], %m: f32[4,6]) {
    %g: f32[4,6] = mul(%x, %w)
    %w2: f32[4,6], %m2: f32[4,6] = sgd_momentum(%w, %g, %m, %lr)
    return %lr
    update %w = %w2, %m = %m2
  })");
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "w2")].where, Where::state);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "w2")].reason, Reason::update);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "m2")].slot, 1);
  EXPECT_EQ(plan.arena_bytes, 96);
}

TEST(Plan, StateThatIsReadLaterCostsACopy) {
  const Plan plan = plan_text(R"(graph g(%x: f32[8]) state(%w: f32[8]) {
    %w2: f32[8] = add(%w, %x)
    %y: f32[8] = mul(%w, %w2)
    return %y
    update %w = %w2
  })");
  EXPECT_EQ(plan.nodes, 3);
  EXPECT_EQ(plan.recomputed_nodes, 0);
  EXPECT_EQ(std::string(plan.graph.nodes[2].op->name), "copy");
}

TEST(Plan, SwapsAndRotationsOfState) {
  for (const char* updates :
       {"%a = %b, %b = %a", "%a = %b, %b = %c, %c = %a", "%a = %x, %b = %a", "%a = %a, %b = %a", "%a = %x, %b = %x, %c = %x"}) {
    const Plan plan = plan_text(
        std::string("graph g(%x: f32[8]) state(%a: f32[8], %b: f32[8], %c: f32[8]) {\n return %a, %c, %x, %a\n update ") +
        updates + "\n}");
    EXPECT_EQ(plan.graph.outputs.size(), 4u);
  }
}

TEST(Plan, OutputsMayBeAnything) {
  const Plan plan = plan_text(R"(graph g(%x: f32[4,6]) state(%s: f32[4]) {
    %c: f32[2] = constant() {value=[1.0,2.0]}
    %t: f32[6,4] = transpose(%x) {axes=[1,0]}
    %y: f32[4,6] = exp(%x)
    return %y, %t, %x, %s, %c, %y
  })");
  EXPECT_EQ(plan.output_slots.size(), 2u);
  EXPECT_EQ(plan.external_bytes, 96 + 16 + 8 + 96 + 96);
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(Plan, EmptyGraph) {
  const Plan plan = plan_text("graph g(%x: f32[4]) {\n return %x\n}");
  EXPECT_EQ(plan.peak_bytes, 16);
  EXPECT_EQ(plan.lower_bound_bytes, 16);
  EXPECT_EQ(plan.floor_bytes, 16);
  EXPECT_TRUE(live_bytes(plan).empty());
}

TEST(Plan, RegionsRunAgainOnceJustBeforeTheirFirstBackwardReader) {
  const Graph graph = parse(R"(graph g(%x: u8[100]) {
    %a: u8[100] = opaque(%x) {us=1.0} [region=0]
    %b: u8[100] = opaque(%a) {us=1.0} [region=0]
    %c: u8[100] = opaque(%b) {us=1.0} [region=0]
    %d: u8[100] = opaque(%c) {us=1.0}
    %e: u8[100] = opaque(%d) {us=1.0} [phase=backward]
    %f: u8[100] = opaque(%e, %b) {us=1.0} [phase=backward]
    %g: u8[100] = opaque(%f, %a, %c) {us=1.0} [phase=backward]
    return %g
  })",
                            "regions");
  const Plan plan = make_plan(graph);
  EXPECT_EQ(plan.strategy, "regions");
  EXPECT_EQ(plan.recomputed_nodes, 2) << "a and b run again; c is the region's output and stays\n" << print(plan.graph);
  EXPECT_TRUE(plan.graph.nodes[5].origin.clone && plan.graph.nodes[6].origin.clone) << print(plan.graph);
  EXPECT_EQ(plan.graph.nodes[5].origin.of.str(), "a");
  EXPECT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "c")].reason, Reason::saved);
  expect_sound(plan, 1);
}

TEST(Plan, EveryValueHasItsReason) {
  const Plan plan = make_plan(test::chain(3, 100));
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "x")].reason, Reason::input);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "a1")].reason, Reason::saved);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "g2")].reason, Reason::gradient);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "g0")].reason, Reason::output);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "a1")].reader, plan.graph.node_count() - 1);
}

TEST(Plan, InfeasibleNamesFloorNodeAndTensors) {
  PlanOptions options;
  options.budget = 100;
  const Plan plan = make_plan(test::chain(12, 1000), options);
  EXPECT_FALSE(plan.feasible);
  EXPECT_EQ(plan.peak_bytes, plan.floor_bytes);
  EXPECT_NE(plan.infeasible_reason.find("the floor is " + std::to_string(plan.floor_bytes) + " bytes"), std::string::npos)
      << plan.infeasible_reason;
  EXPECT_NE(plan.infeasible_reason.find("opaque("), std::string::npos) << plan.infeasible_reason;
  EXPECT_NE(plan.infeasible_reason.find("1000 bytes"), std::string::npos) << plan.infeasible_reason;
  expect_sound(plan, 1);
}

TEST(Plan, BadOptionsAreUsageErrors) {
  const Graph graph = test::chain(2, 8);
  const auto with = [](auto change) {
    PlanOptions options;
    change(options);
    return options;
  };
  EXPECT_THROW(make_plan(graph, with([](PlanOptions& o) { o.alignment = 3; })), UsageError);
  EXPECT_THROW(make_plan(graph, with([](PlanOptions& o) { o.alignment = 0; })), UsageError);
  EXPECT_THROW(make_plan(graph, with([](PlanOptions& o) { o.budget = -7; })), UsageError);
  EXPECT_THROW(make_plan(graph, with([](PlanOptions& o) { o.budget_percent = -3; })), UsageError);
  EXPECT_THROW(make_plan(graph, with([](PlanOptions& o) { o.budget = 1, o.budget_percent = 1; })), UsageError);
  Graph broken = graph;
  broken.outputs.push_back(999);
  EXPECT_THROW(make_plan(broken), InvalidGraphError);
}

TEST(Plan, CancelsAndReportsProgress) {
  std::atomic<bool> cancel{false};
  PlanOptions options;
  options.cancel = &cancel;
  double last = 0;
  int reports = 0;
  options.progress = [&](double done) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, 1.0);
    last = done;
    ++reports;
  };
  make_plan(test::chain(12, 1000), options);
  EXPECT_GT(reports, 3);
  EXPECT_EQ(last, 1.0);
  cancel = true;
  EXPECT_THROW(make_plan(test::chain(12, 1000), options), Cancelled);
}

// The flag goes up at every point of a planning in turn: there is a whole plan, or none. Only the thread of the caller reports,
// and which strategies it runs differs from planning to planning, so the number of reports does too.
TEST(Plan, CancelledAtAnyPointThereIsNoPlan) {
  const Graph g = test::chain(40, 1000);
  PlanOptions options;
  options.budget_percent = 60;
  options.threads = 4;
  const Plan whole = make_plan(g, options);
  int reports = 0;
  options.progress = [&](double) { ++reports; };
  make_plan(g, options);
  ASSERT_GT(reports, 3);
  for (int at = 1; at <= reports; at += test::stride(5)) {
    std::atomic<bool> cancel{false};
    int seen = 0;
    options.cancel = &cancel;
    options.progress = [&](double) { cancel = ++seen >= at; };
    try {
      EXPECT_EQ(make_plan(g, options).peak_bytes, whole.peak_bytes) << at;
      EXPECT_LE(seen, at) << "a report came after the flag went up, and the planning was not cancelled";
    } catch (const Cancelled&) {
    }
  }
}

// Forty layers whose results backward reads. If `changed`, %a20 is larger, and %extra is alive in the middle.
Graph layered(bool changed) {
  std::string text = "graph f(%x: u8[640]) {\n";
  const auto bytes = [](int i) { return 64 * (10 + i * 37 % 23); };
  for (int i = 1; i <= 40; ++i) {
    const int size = changed && i == 20 ? bytes(i) + 320 : bytes(i);
    text += fmt::format("  %a{}: u8[{}] = opaque(%{}) {{us=1.0}}\n", i, size, i == 1 ? "x" : fmt::format("a{}", i - 1));
    if (changed && i == 25) text += "  %extra: u8[192] = opaque(%a24) {us=1.0}\n";
  }
  text += fmt::format("  %g40: u8[{}] = opaque(%a40{}) {{us=1.0}}\n", bytes(40), changed ? ", %extra" : "");
  for (int i = 39; i >= 1; --i) text += fmt::format("  %g{}: u8[{}] = opaque(%g{}, %a{}) {{us=1.0}}\n", i, bytes(i), i + 1, i);
  return parse(text + "  return %g1\n}\n");
}

// Compares values of equal name and type that lie in the arena in both plans. Returns the number of values that keep their
// offset, and the number of all.
std::pair<int, int> kept_and_all(const Plan& before, const Plan& after) {
  int kept = 0, all = 0;
  for (ValueId v = 0; v < after.graph.value_count(); ++v)
    for (ValueId w = 0; w < before.graph.value_count(); ++w) {
      if (after.graph.value_name(v) != before.graph.value_name(w) || after.graph.values[v].type != before.graph.values[w].type)
        continue;
      if (after.values[v].where != Where::arena || before.values[w].where != Where::arena) continue;
      ++all;
      kept += after.values[v].offset == before.values[w].offset;
    }
  return {kept, all};
}

TEST(Plan, NearAnotherKeepsItsAddresses) {
  const auto before = std::make_shared<const Plan>(make_plan(layered(false), {.ordering = Ordering::recorded}));
  PlanOptions options{.ordering = Ordering::recorded};
  const Plan alone = make_plan(layered(true), options);
  options.near = before;
  const Plan near = make_plan(layered(true), options);
  expect_sound(near, 1);
  const auto [kept_alone, all_alone] = kept_and_all(*before, alone);
  const auto [kept, all] = kept_and_all(*before, near);
  EXPECT_GT(all, 70);
  EXPECT_LT(kept_alone, all_alone * 3 / 4) << "the change is too small to show anything";
  EXPECT_GE(kept, all * 8 / 10);
  EXPECT_LE(static_cast<double>(near.peak_bytes), 1.02 * static_cast<double>(alone.peak_bytes))
      << "a hundredth over greedy placement; `alone` is searched";

  const Plan same = make_plan(layered(false), {.ordering = Ordering::recorded, .near = before});
  EXPECT_EQ(kept_and_all(*before, same).first, kept_and_all(*before, same).second);
  EXPECT_EQ(same.peak_bytes, before->peak_bytes);
}

TEST(Plan, StrategyNamesRoundTrip) {
  for (Strategy s : {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic}) {
    Strategy parsed = Strategy::none;
    EXPECT_TRUE(parse_strategy(strategy_name(s), &parsed));
    EXPECT_EQ(parsed, s);
  }
  Strategy parsed;
  EXPECT_FALSE(parse_strategy("magic", &parsed));
}

}  // namespace
}  // namespace tapedeck
