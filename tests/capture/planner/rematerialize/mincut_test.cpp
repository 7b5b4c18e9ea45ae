// Tests the strategy `mincut`: its flows against all cuts of small graphs, and what it keeps of graphs whose answer is known.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/solvers/max_flow.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

struct Edge {
  int from, to;
  std::int64_t capacity;
};

std::vector<Edge> random_edges(unsigned seed, int vertices) {
  std::mt19937 random(seed);
  std::vector<Edge> edges(random() % 20);
  for (Edge& e : edges) {
    e = {static_cast<int>(random() % static_cast<unsigned>(vertices)),
         static_cast<int>(random() % static_cast<unsigned>(vertices)), static_cast<std::int64_t>(random() % 10)};
    if (random() % 8 == 0 && (e.from != 0 || e.to != 1)) e.capacity = 1000;
  }
  return edges;
}

std::int64_t bytes_across(const std::vector<Edge>& edges, unsigned side_of_sink) {
  std::int64_t bytes = 0;
  for (const Edge& e : edges)
    if (!(side_of_sink >> e.from & 1) && (side_of_sink >> e.to & 1)) bytes += e.capacity;
  return bytes;
}

TEST(MaxFlow, EqualsTheLeastOfAllCuts) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const int vertices = 2 + static_cast<int>(seed % 7);  // 0 is the source, 1 the sink
    const std::vector<Edge> edges = random_edges(seed, vertices);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    int fewest = vertices;
    for (unsigned side = 0; side < 1u << vertices; ++side) {
      if ((side & 1) || !(side & 2)) continue;
      const std::int64_t bytes = bytes_across(edges, side);
      const int size = __builtin_popcount(side);
      if (bytes < least || (bytes == least && size < fewest)) fewest = size;
      least = std::min(least, bytes);
    }
    MaxFlow flow(vertices);
    for (const Edge& e : edges) flow.add_edge(e.from, e.to, e.capacity);
    ASSERT_EQ(flow.find(0, 1, 1'000'000, {}), least) << "seed " << seed;
    unsigned side = 0;
    const std::vector<char> of_sink = flow.side_of_sink(1);
    for (int v = 0; v < vertices; ++v) side |= static_cast<unsigned>(of_sink[v]) << v;
    ASSERT_EQ(bytes_across(edges, side), least) << "seed " << seed;
    ASSERT_EQ(__builtin_popcount(side), fewest) << "the least cut with the fewest vertices beside the sink, seed " << seed;
  }
}

TEST(MaxFlow, LongPathsNeedNoStack) {
  constexpr int kVertices = 300'000;
  MaxFlow flow(kVertices);
  for (int v = 0; v + 1 < kVertices; ++v) flow.add_edge(v, v + 1, 10 + v % 7);
  EXPECT_EQ(flow.find(0, kVertices - 1, 10'000'000, {}), 10);
  EXPECT_EQ(flow.side_of_sink(kVertices - 1)[0], 0);
}

TEST(MaxFlow, GivesUpAfterItsWork) {
  MaxFlow flow(1000);
  for (int v = 0; v + 1 < 1000; ++v) flow.add_edge(v, v + 1, 1);
  EXPECT_EQ(flow.find(0, 999, 100, {}), MaxFlow::kGivenUp);
}

std::vector<std::string> computed_again(const test::Chosen& c) {
  std::vector<std::string> names;
  for (const Decision& d : c.choices.decisions) names.push_back(d.value);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(MinCut, KeepsTheNarrowPlace) {
  // Backward reads three wide values, all made from the narrow one.
  const test::Chosen c(parse(R"(graph g(%x: f32[64,64]) {
    %wide: f32[64,64] = matmul(%x, %x)
    %narrow: f32[64,1] = sum(%wide) {axes=[1], keepdims=true}
    %a: f32[64,64] = mul(%narrow, %x)
    %b: f32[64,64] = tanh(%a)
    %c: f32[64,64] = sigmoid(%b)
    %l: f32[1] = opaque(%c) {us=1000.0}
    %g0: f32[1] = opaque(%l, %narrow) {us=1.0} [phase=backward]
    %g1: f32[64,64] = opaque(%g0, %c) {us=1.0} [phase=backward]
    %g2: f32[64,64] = opaque(%g1, %b) {us=1.0} [phase=backward]
    %g3: f32[64,64] = opaque(%g2, %a) {us=1.0} [phase=backward]
    return %g3
  })",
                             "narrow"),
                       "mincut");
  EXPECT_EQ(computed_again(c), (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_FALSE(c.choices.decisions.empty());
  EXPECT_NE(c.choices.decisions[0].reason.find("the minimum cut keeps 260 bytes"), std::string::npos)
      << c.choices.decisions[0].reason;
}

TEST(MinCut, CostlyNodesAreKept) {
  const test::Chosen c(parse(R"(graph g(%x: f32[256,256]) state(%w: f32[256,256]) {
    %p: f32[256,256] = matmul(%x, %w)
    %q: f32[256,256] = tanh(%p)
    %r: f32[256,256] = matmul(%q, %w)
    %g0: f32[256,256] = matmul(%r, %r) [phase=backward]
    %g1: f32[256,256] = matmul(%g0, %q) [phase=backward]
    %g2: f32[256,256] = matmul(%g1, %p) [phase=backward]
    return %g2
  })",
                             "products"),
                       "mincut");
  EXPECT_EQ(computed_again(c), std::vector<std::string>{"q"}) << "%p is kept anyway, and %q is made from it";
}

// Of equal cuts the one that computes least again: nothing.
TEST(MinCut, NothingIsComputedAgainThatFreesNothing) {
  const test::Chosen c(parse(R"(graph g(%x: f32[256,256]) state(%w: f32[256,256]) {
    %p: f32[256,256] = matmul(%x, %w)
    %q: f32[256,256] = tanh(%p)
    %r: f32[256,256] = matmul(%q, %w)
    %g0: f32[256,256] = matmul(%r, %r) [phase=backward]
    %g1: f32[256,256] = matmul(%g0, %q) [phase=backward]
    return %g1
  })",
                             "equal"),
                       "mincut");
  EXPECT_EQ(computed_again(c), std::vector<std::string>());
  EXPECT_EQ(c.choices.points.size(), 1u);
}

// Of 100 equal layers every eleventh is kept: the chains between them are no longer than the square root of 100.
TEST(MinCut, LongChainsAreCut) {
  const test::Chosen c(test::chain(100, 1000), "mincut");
  EXPECT_EQ(c.choices.decisions.size(), 91u);
  EXPECT_LT(c.last_peak(), 25'000);
}

}  // namespace
}  // namespace tapedeck
