// Tests the strategy `sqrt`: its peaks and costs on chains, and where it cuts.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/rematerialize/forward_line.h>

#include <cmath>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::int64_t kUnit = 1000;

TEST(Sqrt, AChainPeaksAtTwiceTheSquareRoot) {
  for (const int layers : {16, 36, 100, 400, 1000}) {
    const test::Chosen c(test::chain(layers, kUnit), "sqrt");
    const double units = static_cast<double>(c.last_peak()) / kUnit, root = std::sqrt(layers);
    EXPECT_LE(units, 2 * root + 4) << layers;
    EXPECT_GE(units, root) << layers;
    const double more = (c.cost_at(c.choices.points.back()) - c.facts.keep_all_cost) / c.facts.keep_all_cost;
    EXPECT_LE(more, 1.0 / 2) << "one more forward is half of a step of " << layers;
  }
}

// Cut in two, the first half runs again: a quarter of the step more, for about half of the bytes.
TEST(Sqrt, TheFirstPointCutsInTwo) {
  const test::Chosen c(test::chain(100, kUnit), "sqrt");
  ASSERT_GE(c.choices.points.size(), 4u);
  const ChoicePoint& half = c.choices.points[1];
  EXPECT_NEAR(static_cast<double>(half.live_peak) / kUnit, 52, 2);
  EXPECT_NEAR(c.cost_at(half) / c.facts.keep_all_cost, 1.25, 0.02);
}

TEST(Sqrt, MorePointsCostMoreAndPeakLower) {
  for (const int layers : {30, 100, 300}) {
    const test::Chosen c(test::chain(layers, kUnit), "sqrt");
    for (std::size_t i = 1; i < c.choices.points.size(); ++i) {
      EXPECT_LT(c.choices.points[i].live_peak, c.choices.points[i - 1].live_peak);
      EXPECT_GE(c.cost_at(c.choices.points[i]), c.cost_at(c.choices.points[i - 1]));
    }
  }
}

// A value that a node behind a cut reads stays stored: here it is the skip connection of a U-Net.
TEST(Sqrt, WhatCrossesACutIsKept) {
  const test::Chosen c(parse(R"(graph u(%x: u8[1000]) {
    %skip: u8[1000] = opaque(%x) {us=1.0}
    %a: u8[1000] = opaque(%skip) {us=1.0}
    %b: u8[1000] = opaque(%a) {us=1.0}
    %c: u8[1000] = opaque(%b) {us=1.0}
    %d: u8[1000] = opaque(%c) {us=1.0}
    %e: u8[1000] = opaque(%d, %skip) {us=1.0}
    %g0: u8[8] = opaque(%e) {us=1.0} [phase=backward]
    %g1: u8[8] = opaque(%g0, %d) {us=1.0} [phase=backward]
    %g2: u8[8] = opaque(%g1, %c) {us=1.0} [phase=backward]
    %g3: u8[8] = opaque(%g2, %b) {us=1.0} [phase=backward]
    %g4: u8[8] = opaque(%g3, %a) {us=1.0} [phase=backward]
    %g5: u8[8] = opaque(%g4, %skip) {us=1.0} [phase=backward]
    return %g5
  })",
                             "u"),
                       "sqrt");
  ASSERT_GE(c.choices.points.size(), 2u);
  const ClonedGraph cloned = c.graph_at(c.choices.points.back());
  for (NodeId n = 0; n < cloned.graph.node_count(); ++n)
    EXPECT_FALSE(cloned.graph.nodes[n].origin.clone && cloned.source[n] == 0) << "%skip runs once";
}

TEST(Sqrt, CutsGoWhereLittleCrosses) {
  // Each block of three has two wide values inside and a narrow one at its end.
  std::string text = "graph blocks(%n0: u8[10]) {\n";
  for (int b = 1; b <= 8; ++b) {
    const std::string i = std::to_string(b);
    text += "  %a" + i + ": u8[1000] = opaque(%n" + std::to_string(b - 1) + ") {us=1.0}\n  %b" + i + ": u8[1000] = opaque(%a" +
            i + ") {us=1.0}\n  %n" + i + ": u8[10] = opaque(%b" + i + ") {us=1.0}\n";
  }
  PassRunner passes;
  const Graph graph = prepare(parse(text + "  return %n8\n}\n", "blocks"), &passes);
  const ForwardLine line = forward_line(collect_facts(graph));
  for (std::int64_t segments : {2, 3, 4})
    for (std::size_t cut : cut_evenly(line, segments)) EXPECT_EQ(cut % 3, 2u) << segments;
  EXPECT_EQ(cut_evenly(line, 4).size(), 3u);
  EXPECT_EQ(cut_evenly(line, 1).size(), 0u);
}

TEST(ForwardLine, CountsWhatCrosses) {
  PassRunner passes;
  const Graph graph = prepare(parse(R"(graph g(%x: u8[10]) {
    %a: u8[100] = opaque(%x) {us=1.0}
    %b: u8[20] = opaque(%a) {us=1.0}
    %c: u8[3] = opaque(%a, %b) {us=1.0}
    %d: u8[10] = opaque(%c) {us=1.0}
    %e: u8[10] = opaque(%d, %a) {us=1.0} [phase=backward]
    return %e
  })",
                                    "line"),
                              &passes);
  const ForwardLine line = forward_line(collect_facts(graph));
  EXPECT_EQ(line.crossing, (std::vector<std::int64_t>{100, 120, 3, 0}));
  EXPECT_EQ(line.crossing_values, (std::vector<std::int32_t>{1, 2, 1, 0}));
  EXPECT_EQ(line.bytes_until, (std::vector<std::int64_t>{100, 120, 123, 133}));
}

}  // namespace
}  // namespace tapedeck
