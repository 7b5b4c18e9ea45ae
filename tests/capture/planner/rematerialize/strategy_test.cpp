// Tests the registry of strategies: the planner finds a strategy of this file by its name and plans with it.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tapedeck {
namespace {

// A strategy that computes again, just before its last reader, every value that depends on inputs alone.
Choices choose_from_inputs(const Facts& facts, const Watch&) {
  const Graph& graph = *facts.graph;
  Schedule schedule(facts);
  Choices choices;
  choices.points.push_back({0, 0, schedule.peak().bytes});
  std::vector<NodeId> last(graph.values.size(), kNone);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    for (ValueId root : facts.reads(n)) last[root] = n;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const auto reads = facts.reads(n), makes = facts.makes(n);
    const bool from_inputs = std::none_of(reads.begin(), reads.end(), [&](ValueId root) { return facts.in_arena(root); });
    if (!from_inputs || makes.size() != 1 || !facts.can_repeat(n) || last[makes[0]] <= n + 1) continue;
    schedule.add_run(last[makes[0]], n);
    schedule.remove_if_unread(n, n);
    schedule.refresh();
    Decision decision;
    decision.value = graph.value_name(makes[0]);
    decision.reason = "made from inputs alone";
    choices.decisions.push_back(decision);
    choices.points.push_back(
        {static_cast<std::int32_t>(choices.decisions.size()), schedule.journal().size(), schedule.peak().bytes});
  }
  choices.journal = schedule.journal();
  return choices;
}

Strategy from_inputs() {
  static const Strategy strategy = register_strategy({
      .name = "from_inputs",
      .doc = "recomputes values that are made from inputs alone",
      .choose = choose_from_inputs,
      .in_auto = InAuto::never,
  });
  return strategy;
}

Graph kept_across_a_peak() {
  return parse(
      "graph g(%x: f32[1024]) {\n"
      "  %h: f32[1024] = exp(%x)\n"
      "  %t: f32[1024] = tanh(%h)\n"
      "  %m: f32[1] = sum(%t) {axes=[0], keepdims=true}\n"
      "  %d: f32[1024] = mul(%h, %m)\n"
      "  return %d\n"
      "}\n");
}

std::string error_of(const char* name) {
  try {
    strategy_named(name);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(Strategy, ARegisteredOneIsPlannedWith) {
  PlanOptions options;
  options.strategy = from_inputs();
  EXPECT_EQ(make_plan(kept_across_a_peak(), options).recomputed_nodes, 0);
  options.budget_percent = 85;
  const Plan plan = make_plan(kept_across_a_peak(), options);
  EXPECT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_EQ(plan.strategy, "from_inputs");
  EXPECT_EQ(plan.recomputed_nodes, 1);
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.decisions[0].value, "h");
  EXPECT_EQ(plan.decisions[0].reason, "made from inputs alone");
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
}

TEST(Strategy, OneThatIsNotAutomaticIsAskedByNameOnly) {
  from_inputs();
  PlanOptions options;
  options.budget_percent = 85;
  EXPECT_EQ(make_plan(kept_across_a_peak(), options).strategy, "greedy");
}

TEST(Strategy, IsFoundByName) {
  const Strategy registered = from_inputs();
  EXPECT_EQ(strategy_named("from_inputs"), registered);
  EXPECT_STREQ(strategy_name(from_inputs()), "from_inputs");
  EXPECT_EQ(find_strategy(from_inputs())->choose, &choose_from_inputs);
  EXPECT_STREQ(find_strategy(Strategy::greedy)->name, "greedy");
  EXPECT_EQ(strategy_entry("regions").taken_for, TakenFor::wishes);
  EXPECT_EQ(find_strategy(Strategy::none), nullptr);
  EXPECT_EQ(strategy_named("auto"), Strategy::automatic);
}

TEST(Strategy, AnUnknownNameIsAnsweredWithAllNames) {
  const std::string error = error_of("best");
  EXPECT_NE(error.find("unknown strategy 'best'"), std::string::npos) << error;
  for (const StrategyEntry* s : all_strategies()) {
    EXPECT_NE(error.find(s->name), std::string::npos) << error;
    EXPECT_NE(error.find(s->doc), std::string::npos) << error;
  }
  EXPECT_THROW(strategy_entry("none"), UsageError);
}

TEST(Strategy, NamesAreTakenOnce) {
  from_inputs();
  for (const char* name : {"from_inputs", "greedy", "none", "auto"})
    EXPECT_THROW(register_strategy({.name = name, .choose = choose_from_inputs}), UsageError) << name;
}

}  // namespace
}  // namespace tapedeck
