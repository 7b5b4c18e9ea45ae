// Tests wishes for single values: which values a pattern names, and that every plan honours the wishes, whatever its strategy
// and its budget.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>

#include <gtest/gtest.h>

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
            "--keep modul:enc: 'modul:' is none of module:, op:, trait: and region:: did you mean 'module'?");
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

class RandomWishes : public ::testing::TestWithParam<unsigned> {};

// Every third value of the program, from another one on for each seed.
std::vector<Wish> wishes_for(const Graph& graph, WishKind kind, unsigned seed) {
  std::vector<Wish> wishes;
  for (ValueId v = static_cast<ValueId>(seed % 3); v < graph.value_count(); v += 3)
    wishes.push_back({kind, graph.value_name(v)});
  return wishes;
}

TEST_P(RandomWishes, ToKeepAreHonouredInEveryPlan) {
  const Graph graph = test::RandomProgram(GetParam()).graph();
  const std::vector<Wish> wishes = wishes_for(graph, WishKind::keep, GetParam());
  for (Strategy strategy : {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic})
    for (double percent : {-1, 0, 60, 85}) {
      PlanOptions options;
      options.strategy = strategy;
      options.budget_percent = percent;
      options.wishes = wishes;
      const Plan plan = make_plan(graph, options);
      ASSERT_EQ(complaint_of(plan, GetParam()), "") << print(plan.graph);
      const std::set<std::string> again = repeated(plan);
      for (const Wish& wish : wishes)
        EXPECT_FALSE(again.count(name_of_maker(plan.graph, wish.pattern))) << "%" << wish.pattern << "\n" << print(plan.graph);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWishes, ::testing::Range(0u, 40u));

}  // namespace
}  // namespace tapedeck
