// Tests what is said of wishes: the values that they name, the reasons why a wish is not met, and its cost.
#include <tapedeck/capture/explain/wish_costs.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

Graph with_everything() {
  return parse(R"(graph g(%x: f32[100]) state(%w: f32[100]) {
    %unread: f32[100] = exp(%x)
    %a: f32[100] = exp(%w)
    %b: f32[100] = tanh(%x)
    %r: f32[10,10] = reshape(%b) {shape=[10,10]}
    %c: f32[100] = mul(%a, %b)
    %w2: f32[100] = add(%w, %c)  [phase=backward]
    %d: f32[100] = mul(%w2, %a)  [phase=backward]
    %e: f32[100] = mul(%d, %b)   [phase=backward]
    %f: f32[10,10] = mul(%r, %r) [phase=backward]
    return %e, %c, %f
    update %w = %w2
  })",
               "everything");
}

std::string refusals_of(const char* pattern, WishKind kind = WishKind::recompute) {
  PlanOptions options;
  options.wishes = {{kind, pattern}};
  const WishOutcome outcome = wish_outcomes(with_everything(), options)[0];
  std::string text = std::to_string(outcome.honoured) + " of " + std::to_string(outcome.values);
  for (const WishRefusal& r : outcome.refusals) text += "; " + r.value + ": " + r.why;
  return text;
}

TEST(WishOutcomes, SayWhyAWishIsNotMet) {
  EXPECT_EQ(refusals_of("b"), "1 of 1");
  EXPECT_EQ(refusals_of("r"), "1 of 1") << "a view: the value that it looks at is computed again";
  EXPECT_EQ(refusals_of("x"), "0 of 1; x: it is an input");
  EXPECT_EQ(refusals_of("w"), "0 of 1; w: it is state");
  EXPECT_EQ(refusals_of("c"), "0 of 1; c: it is a result of the graph");
  EXPECT_EQ(refusals_of("w2"), "0 of 1; w2: it is written into a state");
  EXPECT_EQ(refusals_of("a"), "0 of 1; a: state %w, which it reads, is overwritten by then");
  EXPECT_EQ(refusals_of("unread"), "0 of 1; unread: a pass left it out of the planned graph");
  EXPECT_EQ(refusals_of("*", WishKind::keep), "10 of 10");
}

TEST(WishOutcomes, CountWhatALaterWishTakesOver) {
  PlanOptions options;
  options.wishes = {{WishKind::recompute, "?"}, {WishKind::keep, "b"}};
  const auto outcomes = wish_outcomes(with_everything(), options);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].overruled, 1);
  EXPECT_EQ(outcomes[1].overruled, 0);
  EXPECT_EQ(outcomes[1].honoured, 1);
  for (const WishRefusal& r : outcomes[0].refusals) {
    if (r.value != "r") continue;
    EXPECT_EQ(r.why, "it is a view of %b; another wish keeps what the same node makes");
  }
  for (const WishOutcome& o : outcomes) EXPECT_EQ(o.values, o.honoured + o.refused + o.overruled);
}

TEST(WishOutcomes, AnUnknownNameIsAnErrorAsInAPlanning) {
  PlanOptions options;
  options.wishes = {{WishKind::keep, "unknown"}};
  EXPECT_THROW(wish_outcomes(with_everything(), options), UsageError);
  EXPECT_TRUE(wish_outcomes(with_everything(), {}).empty());
}

TEST(WishOutcomes, TheProgramStatesWishesByMarks) {
  Graph graph = with_everything();
  for (Node& node : graph.nodes)
    if (graph.value_name(node.first_output) == "b") node.origin.wish = NodeWish::recompute;
  PlanOptions options;
  options.wishes = {{WishKind::keep, "a"}};
  auto outcomes = wish_outcomes(graph, options);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].honoured, 1);
  const Plan plan = make_plan(graph, options);
  add_wish_costs(graph, options, plan, &outcomes);
  ASSERT_EQ(outcomes[0].without.size(), 1u);
  EXPECT_LT(outcomes[0].without[0].cost_us, plan.cost_us);
  EXPECT_NE(wishes_text(outcomes, plan).find("[recompute] in the program   1 value, 1 honoured"), std::string::npos)
      << wishes_text(outcomes, plan);
}

// %h is 4,000 bytes, and the 9,000 bytes of %big are the peak: kept from forward, %h lies beside them.
TEST(WishCosts, AreTheDifferenceToThePlanWithoutTheWish) {
  const Graph graph = parse(R"(graph g(%x: u8[8]) {
    %h: u8[4000] = opaque(%x) {us=7.0}
    %s: u8[8] = opaque(%h) {us=1.0}
    %big: u8[9000] = opaque(%s) {us=1.0}
    %mid: u8[8] = opaque(%big) {us=1.0}
    %end: u8[8] = opaque(%mid, %h) {us=1.0} [phase=backward]
    return %end
  })",
                            "cost");
  PlanOptions options;
  options.alignment = 1;
  options.wishes = {{WishKind::recompute, "h"}};
  const Plan plan = make_plan(graph, options);
  auto outcomes = wish_outcomes(graph, options);
  EXPECT_TRUE(outcomes[0].without.empty());
  add_wish_costs(graph, options, plan, &outcomes);
  ASSERT_EQ(outcomes[0].without.size(), 1u);
  EXPECT_EQ(plan.peak_bytes - outcomes[0].without[0].peak_bytes, -4000);
  EXPECT_EQ(plan.cost_us - outcomes[0].without[0].cost_us, 7.0);
  EXPECT_NE(wishes_text(outcomes, plan).find("costs -4000 bytes of peak, +0 bytes of floor and +7.0 us"), std::string::npos)
      << wishes_text(outcomes, plan);

  options.budget = 12000;
  options.wishes = {{WishKind::keep, "h"}};
  const Plan too_large = make_plan(graph, options);
  EXPECT_FALSE(too_large.feasible);
  outcomes = wish_outcomes(graph, options);
  add_wish_costs(graph, options, too_large, &outcomes);
  EXPECT_TRUE(outcomes[0].without[0].feasible);
  EXPECT_EQ(too_large.floor_bytes - outcomes[0].without[0].floor_bytes, 4000);
  EXPECT_NE(wishes_text(outcomes, too_large).find("without it the budget can be met"), std::string::npos);
}

}  // namespace
}  // namespace tapedeck
