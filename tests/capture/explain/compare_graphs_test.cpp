// Tests the comparison of graphs and of plans on pairs whose differences are known, and on random graphs with themselves.
#include <tapedeck/capture/explain/compare_graphs.h>
#include <tapedeck/capture/explain/compare_plans.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/random_graph.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tapedeck {
namespace {

Graph graph_of(const std::string& body, const std::string& result = "y") {
  return parse(fmt::format("graph g(%x: f32[4]) {{\n{}  return %{}\n}}\n", body, result));
}

TEST(CompareGraphs, NodesAreMatchedByNameAndByStructure) {
  const Graph a =
      graph_of("  %a: f32[4] = exp(%x)\n  %b: f32[4] = relu(%a)\n  %d: f32[4] = add(%b, %a)\n  %y: f32[4] = neg(%d)\n");
  const Graph b = graph_of(
      "  %a: f32[4] = exp(%x)\n  %c: f32[4] = relu(%a)\n  %d: f32[4] = sub(%c, %a)\n  %y: f32[4] = neg(%d)\n  %e: f32[4] = "
      "tanh(%d)\n");
  const GraphComparison found = compare_graphs(a, b);
  EXPECT_FALSE(found.equal());
  EXPECT_EQ(found.same, 2);  // a and y, although y reads a node that changed
  ASSERT_EQ(found.renamed.size(), 1u);
  EXPECT_EQ(found.renamed[0], (std::pair<std::string, std::string>("b", "c")));
  EXPECT_EQ(found.changed, 1);
  EXPECT_EQ(found.only_a, 0);
  EXPECT_EQ(found.only_b, 1);
  EXPECT_EQ(found.moved, 0);
  ASSERT_EQ(found.differences.size(), 2u);
  EXPECT_EQ(found.differences[0].name, "d");
  EXPECT_EQ(found.differences[0].b, b.node_text(2));
  EXPECT_EQ(found.differences[1].name, "e");
  EXPECT_EQ(found.differences[1].a, "");
}

// Automatic names shift when a node is put in: relu.1 there is another node than relu.1 here.
TEST(CompareGraphs, ShiftedNamesAreSeenThrough) {
  const Graph a = graph_of(
      "  %m: f32[4] = exp(%x)\n  %relu: f32[4] = relu(%m)\n  %n: f32[4] = sin(%relu)\n  %relu.1: f32[4] = relu(%n)\n  %y: "
      "f32[4] "
      "= neg(%relu.1)\n");
  const Graph b = graph_of(
      "  %relu: f32[4] = relu(%x)\n  %m: f32[4] = exp(%x)\n  %relu.1: f32[4] = relu(%m)\n  %n: f32[4] = sin(%relu.1)\n  "
      "%relu.2: "
      "f32[4] = relu(%n)\n  %y: f32[4] = neg(%relu.2)\n");
  const GraphComparison found = compare_graphs(a, b);
  EXPECT_EQ(found.changed, 0);
  EXPECT_EQ(found.only_a, 0);
  EXPECT_EQ(found.only_b, 1);
  EXPECT_EQ(found.renamed.size(), 2u);
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_EQ(found.differences[0].b, b.node_text(0));
}

TEST(CompareGraphs, AttributesConstantsOrderAndSignature) {
  const auto sum = [](const char* keep) {
    return graph_of(fmt::format("  %y: f32[1] = sum(%x) {{axes=[0], keepdims={}}}\n", keep));
  };
  EXPECT_TRUE(compare_graphs(sum("true"), sum("true")).equal());
  const Graph two = graph_of("  %a: f32[4] = exp(%x)\n  %b: f32[4] = sin(%x)\n  %y: f32[4] = add(%a, %b)\n");
  const Graph turned = graph_of("  %b: f32[4] = sin(%x)\n  %a: f32[4] = exp(%x)\n  %y: f32[4] = add(%a, %b)\n");
  const GraphComparison order = compare_graphs(two, turned);
  EXPECT_EQ(order.same, 3);
  EXPECT_EQ(order.moved, 1);
  EXPECT_FALSE(order.equal());
  EXPECT_TRUE(order.differences.empty());

  const Graph other = parse("graph g(%x: f32[5], %z: i32[]) {\n  %y: f32[5] = exp(%x)\n  return %y, %x\n}\n");
  const Graph one = graph_of("  %y: f32[4] = exp(%x)\n");
  std::string kinds;
  for (const GraphDifference& d : compare_graphs(one, other).differences) kinds += std::string(d.what) + " ";
  EXPECT_EQ(kinds, "input input node output ");
}

TEST(CompareGraphs, StateAndUpdates) {
  const auto step = [](const char* op, const char* value) {
    return parse(
        fmt::format("graph g(%x: f32[4]) state(%w: f32[4]) {{\n  %a: f32[4] = {}(%w, %x)\n  %b: f32[4] = neg(%a)\n"
                    "  return %b\n  update %w = %{}\n}}\n",
                    op, value));
  };
  EXPECT_TRUE(compare_graphs(step("add", "a"), step("add", "a")).equal());
  const GraphComparison found = compare_graphs(step("add", "a"), step("add", "b"));
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_STREQ(found.differences[0].what, "update");
  EXPECT_EQ(found.differences[0].name, "w");
  EXPECT_EQ(found.differences[0].a, "%a");
  EXPECT_EQ(found.differences[0].b, "%b");
}

// Every graph is equal to itself and to its printed form, and no node is lost: each is same, renamed, changed or only there.
TEST(CompareGraphs, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Graph a = test::RandomGraph(seed).make(30), b = test::RandomGraph(seed + 1).make(40);
    EXPECT_TRUE(compare_graphs(a, a).equal()) << seed;
    PrintOptions whole;
    whole.max_inline_constant = 1 << 20;
    const GraphComparison printed = compare_graphs(a, parse(print(a, whole)));
    EXPECT_TRUE(printed.equal()) << seed
                                 << (printed.differences.empty()
                                         ? std::string(": moved")
                                         : ": " + printed.differences[0].a + " | " + printed.differences[0].b);
    const GraphComparison found = compare_graphs(a, b);
    const auto matched = found.same + static_cast<std::int32_t>(found.renamed.size()) + found.changed;
    EXPECT_EQ(matched + found.only_a, a.node_count()) << seed;
    EXPECT_EQ(matched + found.only_b, b.node_count()) << seed;
  }
}

TEST(ComparePlans, FiguresRecomputedAndPlacements) {
  const Graph g =
      graph_of("  %a: f32[4] = exp(%x)\n  %b: f32[4] = sin(%a)\n  %c: f32[4] = cos(%b)\n  %y: f32[4] = mul(%c, %a)\n");
  const Plan plan = make_plan(g);
  EXPECT_TRUE(compare_plans(plan, plan).equal());
  Plan other = plan;
  other.solve_ms += 1;
  EXPECT_TRUE(compare_plans(plan, other).equal());
  other.peak_bytes += 64;
  other.values[1].offset += 64;
  const PlanComparison found = compare_plans(plan, other);
  ASSERT_EQ(found.figures.size(), 1u);
  EXPECT_EQ(found.figures[0].name, "peak_bytes");
  EXPECT_EQ(found.figures[0].b, std::to_string(other.peak_bytes));
  ASSERT_EQ(found.placements.size(), 1u);
  EXPECT_EQ(found.placements[0].name, plan.graph.value_name(1));
  EXPECT_TRUE(found.recomputed.empty());
}

TEST(ComparePlans, TheLevelIsAFigure) {
  const Graph g = graph_of("  %y: f32[4] = exp(%x)\n");
  const PlanComparison found = compare_plans(make_plan(g), make_plan(g, {.level = OptimizationLevel::cleanups}));
  ASSERT_EQ(found.figures.size(), 1u);
  EXPECT_EQ(found.figures[0].name + " " + found.figures[0].a + " " + found.figures[0].b, "level all cleanups");
}

// Values are matched with what compare_graphs() calls the same, renamed or changed.
TEST(CompareGraphs, MatchesValuesOneToOne) {
  const Graph a = graph_of("  %a: f32[4] = exp(%x)\n  %b: f32[4] = relu(%a)\n  %y: f32[4] = add(%b, %a)\n");
  const Graph b =
      graph_of("  %a: f32[4] = exp(%x)\n  %c: f32[4] = relu(%a)\n  %y: f32[4] = sub(%c, %a)\n  %e: f32[4] = neg(%y)\n");
  const std::vector<ValueId> matched = matched_values(a, b);
  ASSERT_EQ(matched.size(), static_cast<std::size_t>(a.value_count()));
  const std::map<std::string, std::string> expected{{"x", "x"}, {"a", "a"}, {"b", "c"}, {"y", "y"}};
  for (ValueId v = 0; v < a.value_count(); ++v) {
    ASSERT_NE(matched[static_cast<std::size_t>(v)], kNone) << a.value_name(v);
    ASSERT_TRUE(expected.count(a.value_name(v))) << a.value_name(v);
    EXPECT_EQ(b.value_name(matched[static_cast<std::size_t>(v)]), expected.at(a.value_name(v)));
  }
}

}  // namespace
}  // namespace tapedeck
