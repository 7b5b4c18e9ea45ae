// Tests wishes for single values: which values a pattern names, and that every plan honours the wishes, whatever its strategy
// and its budget.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/seeds.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

std::string complaint_of(const Plan& plan, unsigned seed) {
  for (const std::string& violation : check_plan(plan)) return violation;
  for (const std::string& violation : check_clones(plan)) return violation;
  return test::ByteSimulation(plan).run(seed);
}

// By node, the name of its first output: the name that its clones bear as `of`.
std::string name_of_maker(const Graph& graph, const std::string& value) {
  for (const Value& v : graph.values)
    if (v.name.str() == value && v.node != kNone) return graph.value_name(graph.nodes[v.node].first_output);
  return "";
}

std::set<std::string> repeated(const Plan& plan) {
  std::set<std::string> names;
  for (const Node& node : plan.graph.nodes)
    if (node.origin.clone) names.insert(node.origin.of.str());
  return names;
}

std::vector<std::string> names_of(const Graph& graph, const Wish& wish) {
  std::vector<std::string> names;
  const WishedValues wished = find_wished(graph, {wish});
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (wished.wish_of[v] == 0) names.push_back(graph.value_name(v));
  return names;
}

using Names = std::vector<std::string>;

Graph in_modules() {
  return parse(R"(graph g(%x: f32[4]) state(%rng: i64[2]) {
    %h1: f32[4] = exp(%x)                                  [path="enc"]
    %h2: f32[4] = tanh(%h1)                                [path="enc.fc"]
    %d: f32[4] = dropout(%h2, %rng) {p=0.5, path="drop"}   [path="encoder"]
    %h12: f32[4] = exp(%d)                                 [region=3]
    %next: i64[2] = rng_next(%rng)
    return %h12
    update %rng = %next
  })",
               "modules");
}

TEST(Wishes, PatternsNameValues) {
  const Graph graph = in_modules();
  const auto keep = [&](const char* pattern) { return names_of(graph, {WishKind::keep, pattern}); };
  EXPECT_EQ(keep("h1"), Names{"h1"});
  EXPECT_EQ(keep("%h1"), Names{"h1"});
  EXPECT_EQ(keep("h?"), (Names{"h1", "h2"}));
  EXPECT_EQ(keep("h*"), (Names{"h1", "h2", "h12"}));
  EXPECT_EQ(keep("module:enc"), (Names{"h1", "h2"}));
  EXPECT_EQ(keep("module:enc*"), (Names{"h1", "h2", "d"}));
  EXPECT_EQ(keep("op:exp"), (Names{"h1", "h12"}));
  EXPECT_EQ(keep("trait:random"), Names{"d"});
  EXPECT_EQ(keep("region:3"), Names{"h12"});
  EXPECT_EQ(keep("region:4"), Names{});
}

TEST(Wishes, TheLastOneThatNamesAValueCounts) {
  const Graph graph = in_modules();
  const WishedValues wished = find_wished(graph, {{WishKind::keep, "h*"}, {WishKind::recompute, "op:exp"}});
  EXPECT_EQ(wished.wish_of[testing::value_named(graph, "h1")], 1);
  EXPECT_EQ(wished.wish_of[testing::value_named(graph, "h2")], 0);
  EXPECT_EQ(wished.wish_of[testing::value_named(graph, "x")], kNone);
  EXPECT_EQ(wished.named, (std::vector<std::int32_t>{3, 2}));
}

std::string refusal_of(const char* pattern) {
  PlanOptions options;
  options.wishes = {{WishKind::keep, pattern}};
  try {
    make_plan(in_modules(), options);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(Wishes, ABadPatternIsRefusedWithTheReason) {
  EXPECT_EQ(refusal_of(""), "--keep : the pattern names nothing");
  EXPECT_EQ(refusal_of("op:"), "--keep op:: the pattern names nothing");
  EXPECT_EQ(refusal_of("modul:enc"),
            "--keep modul:enc: 'modul:' is none of module:, op:, trait:, region: and note:: did you mean 'module'?");
  EXPECT_NE(refusal_of("a:b").find("write `?` for a colon"), std::string::npos);
  EXPECT_EQ(refusal_of("trait:randon"), "--keep trait:randon: there is no trait 'randon': did you mean 'random'?");
  EXPECT_EQ(refusal_of("region:one"), "--keep region:one: 'one' is no number of a checkpoint region");
  EXPECT_EQ(refusal_of("next1"), "--keep next1: no value has such a name: did you mean 'next'?");
  EXPECT_EQ(refusal_of("op:tanhh"), "--keep op:tanhh: no node has such an op: did you mean 'tanh'?");
  EXPECT_EQ(refusal_of("module:encodr"), "--keep module:encodr: no module has such a path: did you mean 'encoder'?");
  EXPECT_EQ(refusal_of("h*"), "");
}

TEST(Wishes, AValueThatAPassLeavesOutIsNoError) {
  const Graph graph = parse(R"(graph g(%x: f32[4]) {
    %unread: f32[4] = exp(%x)
    %y: f32[4] = neg(%x)
    return %y
  })",
                            "unread");
  PlanOptions options;
  options.wishes = {{WishKind::keep, "unread"}};
  EXPECT_TRUE(make_plan(graph, options).feasible);
}

// ---- values to keep ----

// %h is cheap to compute again, and %t is a view of it.
Graph kept_across_a_peak() {
  return parse(R"(graph g(%x: f32[32,32]) {
    %h: f32[32,32] = exp(%x)
    %t: f32[32,32] = transpose(%h) {axes=[1,0]}
    %s: f32[1,1] = sum(%h) {axes=[0,1], keepdims=true}
    %big: u8[9000] = opaque(%s) {us=1.0}
    %mid: u8[8] = opaque(%big) {us=1.0}
    %d: f32[32,32] = matmul(%t, %h) [phase=backward]
    return %d, %mid
  })",
               "kept");
}

TEST(WishesToKeep, AViewKeepsTheValueThatItLooksAt) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  options.budget_percent = 0;  // the floor
  ASSERT_EQ(repeated(make_plan(kept_across_a_peak(), options)), std::set<std::string>{"h"});
  for (const char* pattern : {"h", "t", "op:transpose", "*"}) {
    options.wishes = {{WishKind::keep, pattern}};
    const Plan plan = make_plan(kept_across_a_peak(), options);
    EXPECT_EQ(repeated(plan), std::set<std::string>{}) << pattern;
    EXPECT_EQ(plan.floor_bytes, plan.keep_all_peak_bytes) << pattern;
  }
  options.wishes = {{WishKind::keep, "s"}};
  EXPECT_EQ(repeated(make_plan(kept_across_a_peak(), options)), std::set<std::string>{"h"});
}

TEST(WishesToKeep, OneResultKeepsTheNodeOfSeveral) {
  const Graph graph = parse(R"(graph g(%x: u8[8]) {
    %a: u8[1000], %b: u8[10] = opaque(%x) {us=1.0}
    %soon: u8[8] = opaque(%a, %b) {us=1.0}
    %big: u8[3000] = opaque(%x) {us=1.0}
    %mid: u8[8] = opaque(%big) {us=1.0}
    %end: u8[8] = opaque(%mid, %a, %b) {us=1.0} [phase=backward]
    return %end, %soon
  })",
                            "several");
  PlanOptions options;
  options.ordering = Ordering::recorded;  // %big computed first would do as well
  options.budget_percent = 85;
  ASSERT_EQ(repeated(make_plan(graph, options)), std::set<std::string>{"a"});
  options.wishes = {{WishKind::keep, "b"}};
  EXPECT_EQ(repeated(make_plan(graph, options)), std::set<std::string>{});
}

// A random program behind a first node that stays where it is: so a node that is moved bears the mark of it, an order edge.
Graph random_program(unsigned seed) {
  std::string text = test::RandomProgram(seed).text();
  text.replace(text.find("{\n"), 2, "{\n  %first: u8[8] = opaque() {us=1.0}\n");
  text.replace(text.find("  return "), 9, "  return %first, ");
  return parse(text, "random");
}

// The strategies that come with the library, and in turn one of the strategies that only a name asks for.
std::vector<Strategy> strategies_for(unsigned seed) {
  constexpr const char* kNamed[] = {"binomial", "echo", "mincut", "mirror", "sqrt"};
  return {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic, strategy_named(kNamed[seed % 5])};
}

class RandomWishes : public ::testing::TestWithParam<unsigned> {};

// Every third value of the program, from another one on for each seed.
std::vector<Wish> wishes_for(const Graph& graph, WishKind kind, unsigned seed) {
  std::vector<Wish> wishes;
  for (ValueId v = static_cast<ValueId>(seed % 3); v < graph.value_count(); v += 3)
    wishes.push_back({kind, graph.value_name(v)});
  return wishes;
}

TEST_P(RandomWishes, ToKeepAreHonouredInEveryPlan) {
  const Graph graph = random_program(GetParam());
  const std::vector<Wish> wishes = wishes_for(graph, WishKind::keep, GetParam());
  for (Strategy strategy : strategies_for(GetParam()))
    for (double percent : {-1, 0, 60, 85}) {
      PlanOptions options;
      options.strategy = strategy;
      options.budget_percent = percent;
      options.find_floor = percent >= 0;
      options.wishes = wishes;
      const Plan plan = make_plan(graph, options);
      ASSERT_EQ(complaint_of(plan, GetParam()), "") << print(plan.graph);
      const std::set<std::string> again = repeated(plan);
      for (const Wish& wish : wishes)
        EXPECT_FALSE(again.count(name_of_maker(plan.graph, wish.pattern))) << "%" << wish.pattern << "\n" << print(plan.graph);
    }
}

// ---- values to compute again ----

PlanOptions to_recompute(const char* pattern) {
  PlanOptions options;
  options.wishes = {{WishKind::recompute, pattern}};
  options.ordering = Ordering::recorded;
  return options;
}

// The nodes of the plan, a clone as "original'".
std::string nodes_of(const Plan& plan) {
  std::string text;
  for (const Node& node : plan.graph.nodes)
    text +=
        (text.empty() ? "" : " ") + (node.origin.clone ? node.origin.of.str() + "'" : plan.graph.value_name(node.first_output));
  return text;
}

Graph a_chain() {
  return parse(R"(graph g(%x: f32[64]) {
    %a: f32[64] = exp(%x)
    %b: f32[64] = tanh(%a)
    %c: f32[64] = exp(%b)
    %s: f32[] = sum(%c) {axes=[0], keepdims=false}
    %d: f32[64] = mul(%c, %c)      [phase=backward]
    %e: f32[64] = mul(%d, %b)      [phase=backward]
    %f: f32[64] = mul(%e, %a)      [phase=backward]
    %g: f32[64] = mul(%f, %b)      [phase=update]
    return %g, %s
  })",
               "chain");
}

TEST(WishesToRecompute, AValueIsMadeAgainForItsFirstReaderInALaterPhase) {
  EXPECT_EQ(nodes_of(make_plan(a_chain(), to_recompute("b"))), "a b c s d b' e f g");
  EXPECT_EQ(nodes_of(make_plan(a_chain(), to_recompute("?"))), "a b c s a' b' c' d e f g");
  EXPECT_EQ(nodes_of(make_plan(a_chain(), to_recompute("op:tanh"))), "a b c s d b' e f g");
  for (const char* none : {"x", "d", "g"})
    EXPECT_EQ(nodes_of(make_plan(a_chain(), to_recompute(none))), "a b c s d e f g") << none;
}

TEST(WishesToRecompute, AValueWithoutAReaderInForwardIsMadeLaterInstead) {
  const Graph graph = parse(R"(graph g(%x: f32[64]) {
    %a: f32[64] = exp(%x)
    %b: f32[64] = tanh(%x)
    %c: f32[64] = mul(%b, %b)      [phase=backward]
    %d: f32[64] = mul(%c, %a)      [phase=backward]
    return %d
  })",
                            "later");
  const Plan plan = make_plan(graph, to_recompute("a"));
  EXPECT_EQ(nodes_of(plan), "b c a d");
  EXPECT_EQ(plan.cost_us, plan.keep_all_cost_us);
}

TEST(WishesToRecompute, TheDecisionsSayWhatIsMadeAgainAndTheRatioItsCost) {
  const Plan plan = make_plan(a_chain(), to_recompute("b"));
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.decisions[0].value, "b");
  EXPECT_EQ(plan.decisions[0].bytes, 256);
  EXPECT_EQ(plan.decisions[0].clones, 1);
  EXPECT_NE(plan.decisions[0].reason.find("wished for by `--recompute b`"), std::string::npos);
  EXPECT_EQ(plan.recomputed_nodes, 1);
  EXPECT_NEAR(plan.cost_us - plan.keep_all_cost_us, plan.decisions[0].cost_us, 1e-9);
  EXPECT_NEAR(plan.keep_all_cost_us, make_plan(a_chain()).keep_all_cost_us, 1e-9);
}

TEST(WishesToRecompute, WithoutBackwardAGapIsOfMoreThanTwoStages) {
  const Graph graph = parse(R"(graph g(%x: f32[64]) {
    %a: f32[64] = exp(%x)
    %b: f32[64] = tanh(%a)
    %c: f32[64] = mul(%b, %b)
    %d: f32[64] = mul(%c, %a)
    %e: f32[64] = exp(%d)
    %f: f32[64] = exp(%e)
    %g: f32[64] = mul(%f, %a)
    return %g
  })",
                            "gaps");
  EXPECT_EQ(nodes_of(make_plan(graph, to_recompute("a"))), "a b c d e f a' g");
}

TEST(WishesToRecompute, WhatCannotBeMadeAgainIsKept) {
  const Graph graph = parse(R"(graph g(%x: f32[100]) state(%w: f32[100]) {
    %a: f32[100] = exp(%w)
    %b: f32[100] = tanh(%a)
    %w2: f32[100] = add(%w, %b)  [phase=backward]
    %c: f32[100] = mul(%w2, %a)  [phase=backward]
    return %c, %b
    update %w = %w2
  })",
                            "state");
  EXPECT_EQ(nodes_of(make_plan(graph, to_recompute("*"))), "a b w2 c");
}

// ---- wishes of the program ----

// The graph with notes on the lines of some nodes.
Graph marked(const Graph& graph, std::vector<std::pair<const char*, NodeWish>> marks) {
  Graph g = graph;
  for (const auto& mark : marks) g.nodes[g.values[testing::value_named(g, mark.first)].node].origin.wish = mark.second;
  return parse(print(g), "marked");
}

TEST(WishesOfTheProgram, KeepPreventsAndRecomputeForces) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  EXPECT_EQ(nodes_of(make_plan(marked(a_chain(), {{"b", NodeWish::recompute}}), options)), "a b c s d b' e f g");
  options.budget_percent = 0;
  ASSERT_EQ(repeated(make_plan(kept_across_a_peak(), options)), std::set<std::string>{"h"});
  const Plan kept = make_plan(marked(kept_across_a_peak(), {{"h", NodeWish::keep}}), options);
  EXPECT_EQ(repeated(kept), std::set<std::string>{});
}

TEST(WishesOfTheProgram, AWishOfTheOptionsWins) {
  EXPECT_EQ(nodes_of(make_plan(marked(a_chain(), {{"b", NodeWish::keep}}), to_recompute("b"))), "a b c s d b' e f g");
  PlanOptions options = to_recompute("c");
  options.wishes = {{WishKind::keep, "b"}};
  EXPECT_EQ(nodes_of(make_plan(marked(a_chain(), {{"b", NodeWish::recompute}}), options)), "a b c s d e f g");
}

TEST(WishesOfTheProgram, ThePlanHasTheMarkOnceAndBitsOfWithoutIt) {
  const Plan plan = make_plan(marked(a_chain(), {{"b", NodeWish::recompute}}));
  int marks = 0;
  for (const Node& node : plan.graph.nodes) marks += node.origin.wish == NodeWish::recompute;
  EXPECT_EQ(marks, 1) << print(plan.graph);
  EXPECT_EQ(complaint_of(plan, 1), "");
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_NE(plan.decisions[0].reason.find("wished for by `[recompute] in the program`"), std::string::npos);
}

TEST(WishesOfTheProgram, MergedNodesHandTheirMarkOn) {
  const Graph graph = parse(R"(graph g(%x: f32[4]) {
    %a: f32[4] = exp(%x)
    %b: f32[4] = exp(%x)      [keep]
    %c: f32[4] = add(%a, %b)
    return %c
  })",
                            "merged");
  const Plan plan = make_plan(graph);
  EXPECT_EQ(plan.graph.nodes[0].origin.wish, NodeWish::keep) << print(plan.graph);
}

// In whose bytes a value lies by views.
ValueId viewed(const Plan& plan, ValueId v) {
  while (plan.values[v].reason == Reason::alias) v = plan.values[v].other;
  return v;
}

// A state that the step overwrites may be gone by the time at which the value would be made again.
bool reads_what_is_overwritten(const Plan& plan, const Node& node) {
  for (ValueId v : plan.graph.inputs(node))
    for (const Update& u : plan.graph.updates)
      if (viewed(plan, v) == u.state) return true;
  return false;
}

bool is_wished(const std::vector<Wish>& wishes, const std::string& name) {
  return std::any_of(wishes.begin(), wishes.end(), [&](const Wish& w) { return w.pattern == name; });
}

bool has_backward(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.origin.phase == Phase::backward; });
}

// By node: it runs after forward. In a searched order forward may end late; a node that was not moved stays what it was
// recorded as.
std::vector<Phase> phases_of(const Plan& plan) {
  std::vector<Phase> phases = run_phases(plan.graph);
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    const Node& node = plan.graph.nodes[n];
    if (!node.origin.clone && node.n_after == 0) phases[n] = node.origin.phase;
  }
  return phases;
}

// The readers in a phase after forward of a copy that was made in forward, and is not needed in forward any more.
std::string readers_that_were_kept_for(const Plan& plan, ValueId value) {
  const std::vector<Phase> phases = phases_of(plan);
  if (phases[plan.graph.values[value].node] != Phase::forward) return "";
  std::string found;
  for (NodeId n = plan.graph.values[value].node + 1; n < plan.graph.node_count(); ++n) {
    const Node& node = plan.graph.nodes[n];
    if (plan.values[node.first_output].reason == Reason::alias) continue;
    const auto reads_it = [&](ValueId v) { return viewed(plan, v) == value; };
    const auto inputs = plan.graph.inputs(node);
    if (std::none_of(inputs.begin(), inputs.end(), reads_it)) continue;
    if (phases[n] == Phase::forward)
      found.clear();
    else
      found += plan.graph.node_text(n) + "\n";
  }
  return found;
}

TEST(WishesToRecompute, WhatAStrategyMakesAgainReadsNoKeptCopy) {
  const Graph graph = parse(R"(graph g(%x: u8[8]) {
    %small: u8[100] = opaque(%x) {us=1.0}
    %large: u8[1000] = opaque(%small) {us=1.0}
    %soon: u8[8] = opaque(%large, %small) {us=1.0}
    %most: u8[3000] = opaque(%soon) {us=1.0}
    %mid: u8[8] = opaque(%most) {us=1.0}
    %end: u8[8] = opaque(%mid, %large) {us=1.0} [phase=backward]
    return %end
  })",
                            "operand");
  PlanOptions options = to_recompute("soon");
  options.budget_percent = 85;
  EXPECT_EQ(nodes_of(make_plan(graph, options)), "small large soon most mid large' end");
  options.wishes[0].pattern = "small";
  EXPECT_EQ(nodes_of(make_plan(graph, options)), "small large soon most mid small' large' end");
}

// The rule of `mirror` makes no product again, but would make %large again from a kept %small.
TEST(WishesToRecompute, NamedStrategiesReadNoKeptCopy) {
  const Graph graph = parse(R"(graph g(%x: f32[32,32]) {
    %small: f32[32,32] = matmul(%x, %x)
    %large: u8[20000] = opaque(%small) {us=1.0}
    %tall: f32[100,2], %wide: f32[2,100] = opaque(%large) {us=1.0}
    %most: f32[100,100] = matmul(%tall, %wide)
    %mid: f32[100,2] = matmul(%most, %tall)
    %end: u8[8] = opaque(%mid, %large) {us=1.0} [phase=backward]
    return %end
  })",
                            "product");
  for (const char* name : {"binomial", "echo", "mincut", "mirror", "sqrt"}) {
    PlanOptions options = to_recompute("small");
    options.strategy = strategy_named(name);
    options.budget_percent = 0;
    const Plan plan = make_plan(graph, options);
    for (ValueId v = 0; v < plan.graph.value_count(); ++v)
      if (plan.graph.value_name(v) == "small") {
        EXPECT_EQ(readers_that_were_kept_for(plan, v), "") << name << "\n" << print(plan.graph);
      }
  }
}

TEST_P(RandomWishes, ToRecomputeAreHonouredInEveryPlan) {
  const Graph graph = random_program(GetParam());
  const std::vector<Wish> wishes = wishes_for(graph, WishKind::recompute, GetParam());
  for (Strategy strategy : strategies_for(GetParam()))
    for (double percent : {-1, 0, 60, 85}) {
      PlanOptions options;
      options.strategy = strategy;
      options.budget_percent = percent;
      options.find_floor = percent >= 0;
      options.split_phases = GetParam() % 4 == 0;
      options.threads = 1 + static_cast<int>(GetParam() % 3);
      options.wishes = wishes;
      const Plan plan = make_plan(graph, options);
      ASSERT_EQ(complaint_of(plan, GetParam()), "") << print(plan.graph);
      for (ValueId v = 0; has_backward(plan.graph) && v < plan.graph.value_count(); ++v) {
        const NodeId maker = plan.graph.values[v].node;
        if (!is_wished(wishes, plan.graph.value_name(v)) || plan.values[v].where != Where::arena ||
            plan.values[v].reason == Reason::part)
          continue;
        if (maker == kNone || reads_what_is_overwritten(plan, plan.graph.nodes[maker])) continue;
        EXPECT_EQ(readers_that_were_kept_for(plan, v), "") << "%" << plan.graph.value_name(v) << "\n" << print(plan.graph);
      }
    }
}

bool is_view(const Plan& plan, NodeId n) { return plan.values[plan.graph.nodes[n].first_output].reason == Reason::alias; }
bool was_moved(const Plan& plan, NodeId n) { return !plan.graph.nodes[n].origin.clone && plan.graph.nodes[n].n_after > 0; }

TEST_P(RandomWishes, ToRecomputeBridgeNoLongGapWithoutBackward) {
  Graph graph = random_program(GetParam());
  for (Node& node : graph.nodes) node.origin.phase = Phase::forward;
  PlanOptions options = to_recompute("*");
  options.strategy = Strategy::none;
  const Plan plan = make_plan(graph, options);
  ASSERT_EQ(complaint_of(plan, GetParam()), "") << print(plan.graph);
  std::vector<int> stage_of;  // by node: a clone, or a node that was moved, is made for the node after it
  int stage = 0;
  for (const Node& node : plan.graph.nodes) stage_of.push_back(node.origin.clone || node.n_after > 0 ? stage : stage++);
  for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
    const NodeId maker = plan.graph.values[v].node;
    if (plan.values[v].where != Where::arena || maker == kNone || is_view(plan, maker) || was_moved(plan, maker)) continue;
    if (reads_what_is_overwritten(plan, plan.graph.nodes[maker])) continue;
    int last = stage_of[maker];
    for (NodeId n = maker; n < plan.graph.node_count(); ++n) {
      const auto inputs = plan.graph.inputs(plan.graph.nodes[n]);
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) continue;
      if (is_view(plan, n) || was_moved(plan, n)) break;  // it does not stand where it was recorded
      EXPECT_LE(stage_of[n] - last, 2) << "%" << plan.graph.value_name(v) << " for " << plan.graph.node_text(n) << "\n"
                                       << print(plan.graph);
      last = stage_of[n];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWishes, ::testing::Range(0u, unsigned{test::seeds(60)}));

}  // namespace
}  // namespace tapedeck
