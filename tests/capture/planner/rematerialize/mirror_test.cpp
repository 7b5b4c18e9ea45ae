// Tests the strategy `mirror`: D4's rule, first match.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

std::vector<std::string> decided(const Graph& graph) {
  const test::Chosen c(graph, "mirror");
  std::vector<std::string> names;
  for (const Decision& d : c.choices.decisions) names.push_back(d.value);
  std::sort(names.begin(), names.end());
  return names;
}

// Every value here is read in backward. The notes of some nodes vary.
Graph all_kinds(const std::string& note_of_matmul, const std::string& note_of_dropout) {
  return parse(R"(graph g(%x: f32[8,8], %labels: i64[8]) state(%w: f32[8,8], %rng: i64[2] [role=rng]) {
    %product: f32[8,8] = matmul(%x, %w) )" +
                   note_of_matmul + R"(
    %random: f32[8,8] = dropout(%product, %rng) {p=0.5, path="drop"} )" +
                   note_of_dropout + R"(
    %cheap: f32[8,8] = exp(%random)
    %joined: f32[8,16] = concat(%cheap, %cheap) {axis=1}
    %half: f32[8,16] = tanh(%joined)
    %loss: f32[8] = cross_entropy(%cheap, %labels) {reduction="none"}
    %g0: f32[8] = opaque(%loss) {us=1.0} [phase=backward]
    %g1: f32[8] = opaque(%g0, %half) {us=1.0} [phase=backward]
    %g2: f32[8] = opaque(%g1, %joined, %loss) {us=1.0} [phase=backward]
    %g3: f32[8] = opaque(%g2, %cheap) {us=1.0} [phase=backward]
    %g4: f32[8] = opaque(%g3, %random) {us=1.0} [phase=backward]
    %g5: f32[8] = opaque(%g4, %product) {us=1.0} [phase=backward]
    return %g5
  })",
               "kinds");
}

TEST(Mirror, RandomOnesProductsJoinsAndLossesAreKept) {
  EXPECT_EQ(decided(all_kinds("", "")), (std::vector<std::string>{"cheap", "half"}));
}

TEST(Mirror, ACheckpointRegionAsksForMoreButNotForRandomOnes) {
  EXPECT_EQ(decided(all_kinds("[region=0]", "[region=0]")), (std::vector<std::string>{"cheap", "half", "product"}));
}

TEST(Mirror, EveryMirroredValueRunsOnceMore) {
  const test::Chosen c(all_kinds("", ""), "mirror");
  ASSERT_EQ(c.choices.points.size(), 2u);
  const ClonedGraph cloned = c.graph_at(c.choices.points.back());
  EXPECT_EQ(cloned.graph.node_count(), c.graph.node_count() + 1) << "%half is moved: only backward reads it";
  EXPECT_LT(c.last_peak(), c.keep_all_peak());
}

// The chain reads its own values in backward, so all of it is made again at once: the rule frees nothing, and says so.
TEST(Mirror, AChainIsMadeAgainWhole) {
  const test::Chosen c(test::chain(12, 1000), "mirror");
  EXPECT_EQ(c.choices.decisions.size(), 12u);
  EXPECT_GE(c.last_peak(), 12'000);
}

TEST(Mirror, WhatNoLaterPhaseReadsIsLeftAlone) {
  const Graph graph = parse(R"(graph g(%x: f32[100]) {
    %a: f32[100] = exp(%x)
    %b: f32[100] = tanh(%a)
    %c: f32[100] = mul(%a, %b)
    return %c
  })",
                            "inference");
  EXPECT_EQ(decided(graph), std::vector<std::string>());
}

}  // namespace
}  // namespace tapedeck
